package apply_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// TestOwns_NeedsAnApplyEntry of the operator's field manager, beside the label.
func TestOwns_NeedsAnApplyEntry(t *testing.T) {
	owner := apply.Owner{Namespace: "apps", Name: "web", UID: "uid", Operator: "chartwright"}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: &metav1.FieldsV1{}}}
	}
	ours := entry(api.FieldManager, metav1.ManagedFieldsOperationApply, "")
	for _, test := range []struct {
		name    string
		uid     string
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		{"applied", "uid", ours, true},
		{"no label", "", ours, false},
		{"another owner's", "another", ours, false},
		{"the label was copied", "uid", nil, false},
		{"another manager applied it", "uid", entry("another", metav1.ManagedFieldsOperationApply, ""), false},
		{"our manager created it, as a hook", "uid", entry(api.FieldManager, metav1.ManagedFieldsOperationUpdate, ""), false},
		{"our manager applied a subresource", "uid", entry(api.FieldManager, metav1.ManagedFieldsOperationApply, "status"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := &metav1.ObjectMeta{ManagedFields: test.entries}
			if test.uid != "" {
				live.Labels = map[string]string{api.LabelOwnerUID: test.uid}
			}
			if got := apply.Owns(live, owner); got != test.want {
				t.Errorf("owned: %v, want %v", got, test.want)
			}
		})
	}
}
