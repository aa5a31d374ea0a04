package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// account is the operator's ServiceAccount.
var account = types.NamespacedName{Namespace: "chartwright-system", Name: "chartwright-controller-manager"}

// Folders with manifests.
const (
	configDefault = "config/default"
	configSamples = "config/samples"
)

// applyConfig applies config/default without the operator's Deployment, because
// the operator runs as a local process.
func (r *rig) applyConfig(ctx context.Context) (note string, err error) {
	if err := r.checkNotDeployed(ctx); err != nil {
		return "", err
	}
	objects, err := r.manifests(ctx, configDefault)
	if err != nil {
		return "", err
	}
	var manifest bytes.Buffer
	var definitions []string
	for _, object := range objects {
		switch object.GetKind() {
		case "Deployment":
			continue
		case "CustomResourceDefinition":
			definitions = append(definitions, object.GetName())
		}
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", err
		}
		manifest.WriteString("---\n")
		manifest.Write(document)
	}
	if _, err := r.shell.pipe(ctx, manifest.Bytes(), "kubectl apply --server-side --force-conflicts -f -"); err != nil {
		return "", err
	}
	// kubectl wait fails for a CRD that has no conditions yet.
	return "", await(ctx, 30*time.Second, func(ctx context.Context) error {
		_, err := r.shell.run(ctx, "kubectl wait --for=condition=Established --timeout=30s crd "+strings.Join(definitions, " "))
		return err
	})
}

// checkNotDeployed returns an error if the operator is deployed in the cluster.
func (r *rig) checkNotDeployed(ctx context.Context) error {
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, account, &deployment)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == 0 {
		return nil
	}
	return fmt.Errorf("the operator is deployed in this cluster, and two operators would conflict: stop it with\n"+
		"    kubectl scale deployment --namespace %s %s --replicas=0", account.Namespace, account.Name)
}

// manifests returns the objects of a kustomization.
func (r *rig) manifests(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	text, err := r.shell.run(ctx, "kubectl kustomize "+folder)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLToJSONDecoder(strings.NewReader(text))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		objects = append(objects, object)
	}
}
