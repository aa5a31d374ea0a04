package apply

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

func TestCorrectedFields_Limit(t *testing.T) {
	with := func(fields string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
		}}}
	}
	before := with(`{"f:data":{"f:a":{}}}`)
	after := with(`{"f:data":{"f:a":{},"f:b":{},"f:c":{},"f:d":{},"f:e":{}}}`)
	for limit, want := range map[int][]string{
		1: {"data.b", "…"},
		3: {"data.b", "data.c", "data.d", "…"},
		4: {"data.b", "data.c", "data.d", "data.e"},
		9: {"data.b", "data.c", "data.d", "data.e"},
	} {
		if got, _ := CorrectedFields(before, after, limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, expected %q", limit, got, want)
		}
	}
	if got, _ := CorrectedFields(&metav1.ObjectMeta{}, after, 1); !slices.Equal(got, []string{"data.a", "…"}) {
		t.Errorf("without an entry: %q", got)
	}
}
