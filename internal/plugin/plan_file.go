package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// planned returns the custom resource to plan: the live one or, with a file, the edited one
// as the API server would store it.
func (s *session) planned(ctx context.Context, t target, file string) (*unstructured.Unstructured, error) {
	if file == "" {
		return t.get(ctx)
	}
	name, data, err := preview.ReadFile(s.In, file)
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	edited, err := readEdit(data, t.mapping.GroupVersionKind.GroupKind(), t.name)
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w", name, err)
	}
	live, err := t.client.Get(ctx, t.name, metav1.GetOptions{})
	dryRun := []string{metav1.DryRunAll}
	switch {
	case apierrors.IsNotFound(err):
		edited.SetName(t.name)
		edited.SetNamespace(t.namespace)
		edited.SetGroupVersionKind(t.mapping.GroupVersionKind)
		created, err := t.client.Create(ctx, edited, metav1.CreateOptions{DryRun: dryRun})
		return created, t.need("create", "to plan a new custom resource").explain(err)
	case err != nil:
		return nil, t.need("get", "to read the custom resource").explain(err)
	}
	changed := live.DeepCopy()
	changed.Object["spec"] = edited.Object["spec"]
	changed.SetAnnotations(labels.Merge(live.GetAnnotations(), edited.GetAnnotations()))
	changed.SetLabels(labels.Merge(live.GetLabels(), edited.GetLabels()))
	updated, err := t.client.Update(ctx, changed, metav1.UpdateOptions{DryRun: dryRun})
	if apierrors.IsForbidden(err) {
		s.note("Note: you may not update %s, so that the plan lacks the defaults of the CRD.", t)
		changed.SetGeneration(live.GetGeneration() + 1)
		return changed, nil
	}
	return updated, t.need("update", "to plan an edit").explain(err)
}

// readEdit reads a file with a custom resource or only its spec.
func readEdit(data []byte, kind schema.GroupKind, name string) (*unstructured.Unstructured, error) {
	if countDocuments(data) > 1 {
		return nil, errors.New("found several documents: expected one custom resource or its spec")
	}
	content, err := preview.DecodeStrict(data)
	if err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok && content != nil {
		return nil, errors.New("expected a custom resource or its spec")
	}
	whole, edited := unstructured.Unstructured{Object: object}, &unstructured.Unstructured{Object: map[string]any{}}
	if object["kind"] != nil {
		edited.SetAnnotations(whole.GetAnnotations())
		edited.SetLabels(whole.GetLabels())
	}
	_, hasSpec := object["spec"].(map[string]any)
	switch {
	case hasSpec && len(object) == 1:
		// A custom resource with only the field spec.
	case whole.GetAPIVersion() == "" || whole.GetKind() == "":
		object = map[string]any{"spec": object}
	case whole.GroupVersionKind().GroupKind() != kind:
		return nil, fmt.Errorf("found kind %s: expected %s", whole.GroupVersionKind().GroupKind(), kind)
	case whole.GetName() != "" && whole.GetName() != name:
		return nil, fmt.Errorf("found %s %s: expected %s", kind.Kind, whole.GetName(), name)
	}
	spec, err := values.FromSpec(object)
	if err != nil {
		return nil, err
	}
	edited.Object["spec"] = values.Normalize(spec)
	return edited, nil
}

// countDocuments returns the number of YAML documents that are not empty.
func countDocuments(data []byte) (count int) {
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
		var content any
		if yaml.Unmarshal(document, &content) != nil || content != nil {
			count++
		}
	}
	return count
}
