package apply_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

func TestOwns_RequiresApplyEntry(t *testing.T) {
	owner := apply.Owner{Namespace: "apps", Name: "web", UID: "uid", Operator: "chartwright"}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: &metav1.FieldsV1{}}}
	}
	applied := entry(api.FieldManager, metav1.ManagedFieldsOperationApply, "")
	for _, test := range []struct {
		name    string
		uid     string
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		{"applied", "uid", applied, true},
		{"no label", "", applied, false},
		{"label of another owner", "another", applied, false},
		{"copied label", "uid", nil, false},
		{"applied by another manager", "uid", entry("another", metav1.ManagedFieldsOperationApply, ""), false},
		{"created as a hook", "uid", entry(api.FieldManager, metav1.ManagedFieldsOperationUpdate, ""), false},
		{"subresource applied", "uid", entry(api.FieldManager, metav1.ManagedFieldsOperationApply, "status"), false},
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
