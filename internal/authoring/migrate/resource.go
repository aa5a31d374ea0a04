package migrate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
)

// rules are what a custom resource of a kind is held against.
type rules struct {
	kind      catalog.Kind
	admission *preview.Admission
	selector  labels.Selector
}

func newRules(kind catalog.Kind) (*rules, error) {
	admission, err := preview.NewAdmission(kind)
	if err != nil {
		return nil, err
	}
	r := &rules{kind: kind, admission: admission}
	if kind.Selector != nil {
		if r.selector, err = metav1.LabelSelectorAsSelector(kind.Selector); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// resourceName is how findings name a custom resource.
func resourceName(cr *unstructured.Unstructured) string {
	return strings.TrimPrefix(cr.GetNamespace()+"/"+cr.GetName(), "/")
}

// spec tells what the derived CRD would do to a custom resource.
func (r *rules) spec(cr *unstructured.Unstructured) []Finding {
	f := finder{topic: topicOf(r.kind)}
	kept := cr.DeepCopy()
	for _, path := range r.admission.Prune(kept) {
		pointer := pointerTo(path)
		value, _ := lookUp(cr.Object, pointer)
		found := f.addf(Breaks, "", "%s: the CRD has no such field, and drops it", path)
		found.Do = fmt.Sprintf("if the chart uses it, declare it in values.schema.json (%s); if not, take it out", propertyFor(path, value))
		found.Lines = patchCommand(cr, r.admission, map[string]any{"op": "remove", "path": pointer})
		found.Resources = []string{resourceName(cr)}
	}
	for _, problem := range r.admission.Invalid(kept) {
		pointer := pointerTo(problem.Field)
		found := f.addf(Breaks, "", "%s: the CRD refuses it: %s", problem.Field, problem.ErrorBody())
		found.Do = "mend the value, or let values.schema.json take it"
		found.Resources = []string{resourceName(cr)}
		if value, exists := lookUp(cr.Object, pointer); exists {
			if better, ok := converted(value, problem.Detail); ok {
				found.Do = fmt.Sprintf("write %s in place of %s, or let values.schema.json take it", show(better), show(value))
				found.Lines = patchCommand(cr, r.admission, map[string]any{"op": "replace", "path": pointer, "value": better})
			}
		}
	}
	return f.findings
}

// live tells what becomes of a custom resource in the cluster, beside its spec.
func (r *rules) live(cr *unstructured.Unstructured) []Finding {
	f := finder{topic: topicOf(r.kind)}
	of := []string{resourceName(cr)}
	if r.selector != nil && !r.selector.Matches(labels.Set(cr.GetLabels())) {
		found := f.addf(Breaks, "", "its labels do not match the selector %s of the entry, so that nobody would serve it, and delete its objects when it goes", r.selector)
		found.Do, found.Resources = "label it, or change the selector", of
	}
	if cr.GetDeletionTimestamp() != nil {
		found := f.addf(ToDo, "", "it is being deleted")
		found.Do, found.Resources = "let the old operator end that before it stops", of
	}
	for _, finalizer := range cr.GetFinalizers() {
		if theirFinalizers[finalizer] {
			f.addf(Works, "", "the finalizer %s is replaced by %s", finalizer, api.Finalizer).Resources = of
		}
	}
	f.annotations(cr)
	f.conditions(cr)
	return f.findings
}

// conditions tells of custom resources that are not well today.
func (f *finder) conditions(cr *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	for _, item := range list {
		condition, ok := item.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		switch kind := condition["type"]; kind {
		case "Irreconcilable", "ReleaseFailed":
			found := f.addf(ToDo, "", "it fails today (condition %s): %v", kind, condition["message"])
			found.Do, found.Resources = "mend it first, or know that it goes on failing: it is tried again ever more slowly, and never uninstalled for that", []string{resourceName(cr)}
		}
	}
}

// theirFinalizers are those that hold custom resources until they are
// uninstalled.
var theirFinalizers = map[string]bool{
	"helm.sdk.operatorframework.io/uninstall-release": true,
	"uninstall-helm-release":                          true,
}
