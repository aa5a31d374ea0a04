package crd

import (
	"context"
	"fmt"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/testenv"
)

// server starts an API server and returns a client. It skips the test if the API
// server's binary is missing.
func server(t *testing.T) (*envtest.Environment, client.Client) {
	t.Helper()
	env := testenv.Start(t)
	config := env.Config
	config.QPS = -1
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := autoscalingv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

// install creates a CRD and waits until its kind is served.
func install(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if err := c.Create(t.Context(), definition.DeepCopy()); err != nil {
		t.Fatalf("create the CRD: %v", err)
	}
	served(t, c, definition)
}

// served waits until the kind of a CRD is served.
func served(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	var have apiextensionsv1.CustomResourceDefinition
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, testenv.Limit, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), &have); err != nil {
			return false, err
		}
		for _, condition := range have.Status.Conditions {
			if condition.Type == apiextensionsv1.NonStructuralSchema && condition.Status == apiextensionsv1.ConditionTrue {
				return false, fmt.Errorf("not structural: %s", condition.Message)
			}
		}
		err := c.List(ctx, emptyList(definition))
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s is not served: %v", definition.Name, err)
	}
}

func emptyList(definition *apiextensionsv1.CustomResourceDefinition) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(definition.Spec.Group + "/" + definition.Spec.Versions[0].Name)
	list.SetKind(definition.Spec.Names.ListKind)
	return list
}

// resource returns a custom resource with a spec, or without one if it is nil.
func resource(definition *apiextensionsv1.CustomResourceDefinition, spec any) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{Object: map[string]any{}}
	cr.SetAPIVersion(definition.Spec.Group + "/" + definition.Spec.Versions[0].Name)
	cr.SetKind(definition.Spec.Names.Kind)
	if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
		cr.SetNamespace(metav1.NamespaceDefault)
	}
	cr.SetGenerateName("test-")
	if spec != nil {
		cr.Object["spec"] = spec
	}
	return cr
}
