package operator

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/reconcile"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestRelevantChange: updates of the status must not trigger reconciliations.
func TestRelevantChange(t *testing.T) {
	base := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"state": "Installing"}}}
		u.SetGeneration(1)
		u.SetResourceVersion("1")
		u.SetFinalizers([]string{api.Finalizer})
		u.SetAnnotations(map[string]string{"note": "a", api.Domain + "/word": "a"})
		return u
	}
	annotate := func(u *unstructured.Unstructured, key, value string) {
		annotations := maps.Clone(u.GetAnnotations())
		annotations[key] = value
		u.SetAnnotations(annotations)
	}
	for _, test := range []struct {
		name   string
		change func(*unstructured.Unstructured)
		want   bool
	}{
		{"a resync", func(*unstructured.Unstructured) {}, false},
		{"the status", func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"state": "Deployed"}
			u.SetResourceVersion("2")
		}, false},
		{"a status set to null", func(u *unstructured.Unstructured) { delete(u.Object, "status") }, true},
		{"an empty status", func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{} }, true},
		{"a label", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, true},
		{"an annotation of another client", func(u *unstructured.Unstructured) { annotate(u, "note", "b") }, false},
		{"the spec", func(u *unstructured.Unstructured) { u.SetGeneration(2) }, true},
		{"an annotation that is meant for us", func(u *unstructured.Unstructured) { annotate(u, api.Domain+"/word", "b") }, true},
		{"another operator's, which says the same", func(u *unstructured.Unstructured) { annotate(u, api.AnnotationAnsibleReconcilePeriod, "30s") }, true},
		{"another operator's, which says nothing here", func(u *unstructured.Unstructured) { annotate(u, "ansible.operator-sdk/verbosity", "4") }, false},
		{"one that is new", func(u *unstructured.Unstructured) { annotate(u, api.Domain+"/other", "") }, true},
		{"a removed annotation", func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"note": "a"}) }, true},
		{"the deletion", func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time}) }, true},
		{"a finalizer that is gone", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }, true},
		{"a finalizer in the place of ours", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/other"}) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := base()
			test.change(changed)
			if got := relevantChange(base(), changed); got != test.want {
				t.Errorf("relevant: %v, want %v", got, test.want)
			}
		})
	}
}

// TestReadsAnnotations: changes of other annotations are relevant if a template reads
// annotations.
func TestReadsAnnotations(t *testing.T) {
	for name, test := range map[string]struct {
		entry watches.Watch
		want  bool
	}{
		"no templates": {watches.Watch{ServiceAccountName: "annotations"}, false},
		"other templates": {watches.Watch{
			ReleaseNamespace: "{{ .metadata.labels.tier }}",
			ValuesFrom:       []watches.ValuesFrom{{Name: "{{ .metadata.name }}-values"}},
		}, false},
		"a namespace":        {watches.Watch{ReleaseNamespace: "{{ .metadata.annotations.tier }}"}, true},
		"an account":         {watches.Watch{ServiceAccountName: "{{ .metadata.annotations.tier }}"}, true},
		"createNamespace":    {watches.Watch{CreateNamespace: `{{ dig "annotations" "tier" false .metadata }}`}, true},
		"a source of values": {watches.Watch{ValuesFrom: []watches.ValuesFrom{{Name: "a"}, {Name: `{{ index .metadata.annotations "tier" }}`}}}, true},
		"an observed label": {watches.Watch{Observe: []watches.Observe{{
			Selector: watches.ObserveSelector{MatchLabels: map[string]string{"a": "b", "c": "{{ .metadata.annotations.tier }}"}},
		}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			updated := relevantChanges(&reconcile.Reconciler{Kind: catalog.Kind{Watch: test.entry}}).UpdateFunc
			before, after := &unstructured.Unstructured{}, &unstructured.Unstructured{}
			after.SetAnnotations(map[string]string{"tier": "gold"})
			if got := updated(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("relevant: %v, want %v", got, test.want)
			}
		})
	}
}
