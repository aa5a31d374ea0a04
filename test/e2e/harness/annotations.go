package harness

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// Annotate sets an annotation of Chartwright on a custom resource, as kubectl
// annotate does. The name is the part of the key after the slash. A name with a
// slash is a whole key.
func (e *Env) Annotate(cr *unstructured.Unstructured, name, value string) {
	e.t.Helper()
	e.annotate(cr, name, value)
}

// Unannotate removes an annotation of Chartwright.
func (e *Env) Unannotate(cr *unstructured.Unstructured, name string) {
	e.t.Helper()
	e.annotate(cr, name, nil)
}

func (e *Env) annotate(cr *unstructured.Unstructured, name string, value any) {
	e.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key(name): value}}})
	e.must(err)
	_, err = e.At(cr).Patch(e.t.Context(), cr.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: testUser})
	e.must(err)
}

// Annotate sets an annotation, see Env.Annotate.
func (c CR) Annotate(name, value string) CR {
	annotations := c.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key(name)] = value
	c.object.SetAnnotations(annotations)
	return c
}

// key adds Chartwright's prefix to the name of an annotation that has no
// prefix.
func key(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return api.Domain + "/" + name
}

// CountEvents returns how often an event about an object occurred.
func (e *Env) CountEvents(about *unstructured.Unstructured, reason string) int {
	e.t.Helper()
	list, err := e.Typed.CoreV1().Events(e.Namespace).List(e.t.Context(), metav1.ListOptions{})
	e.must(err)
	count := 0
	for i := range list.Items {
		event := &list.Items[i]
		if event.InvolvedObject.Kind == about.GetKind() && event.InvolvedObject.Name == about.GetName() && event.Reason == reason {
			count += int(max(event.Count, 1))
		}
	}
	return count
}
