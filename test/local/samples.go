package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
)

// settleLimit is the maximum time until the effect of a step.
const settleLimit = time.Minute

// samples returns the custom resources of config/samples with the namespace to
// which kubectl applies them.
func (r *rig) samples(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := r.manifests(ctx, configSamples)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		namespaced, err := r.client.IsObjectNamespaced(object)
		if err != nil {
			return nil, err
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(r.namespace)
		}
	}
	return objects, nil
}

// awaitSamples waits until every sample is Ready.
func (r *rig) awaitSamples(ctx context.Context) error {
	samples, err := r.samples(ctx)
	if err != nil {
		return err
	}
	return await(ctx, settleLimit, func(ctx context.Context) error {
		errs := make([]error, len(samples))
		for i, sample := range samples {
			errs[i] = r.checkReady(ctx, sample)
		}
		return errors.Join(errs...)
	})
}

// checkReady reads an object. It returns an error with all conditions unless
// the object is Ready with its current spec.
func (r *rig) checkReady(ctx context.Context, object *unstructured.Unstructured) error {
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	status, err := statusOf(object)
	if err != nil {
		return err
	}
	if status.ObservedGeneration == object.GetGeneration() && meta.IsStatusConditionTrue(status.Conditions, api.ConditionReady) {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s/%s is not Ready; generation %d, observed %d, conditions:",
		object.GetKind(), object.GetNamespace(), object.GetName(), object.GetGeneration(), status.ObservedGeneration)
	for _, condition := range status.Conditions {
		fmt.Fprintf(&text, "\n    %s=%s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	if len(status.Conditions) == 0 {
		text.WriteString(" none")
	}
	return errors.New(text.String())
}

// statusOf returns the status of a custom resource.
func statusOf(object *unstructured.Unstructured) (*api.Status, error) {
	status := &api.Status{}
	content, found := object.Object["status"].(map[string]any)
	if !found {
		return status, nil
	}
	return status, runtime.DefaultUnstructuredConverter.FromUnstructured(content, status)
}
