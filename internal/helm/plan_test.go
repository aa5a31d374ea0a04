package helm

import (
	"net/http"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
)

// planned returns the writes of a plan as text. Each request that is neither a read nor a dry
// run fails.
func (w *world) planned(r Request) (*Plan, []string) {
	w.Helper()
	w.watch()
	w.net.armed.Store(&disturbance{fails: func(request *http.Request) bool {
		return request.Method != http.MethodGet && request.URL.Query().Get("dryRun") != metav1.DryRunAll
	}})
	plan, err := w.helm.PlanUpgrade(w.Context(), r)
	w.net.armed.Store(nil)
	w.must(err)
	var texts []string
	for _, write := range plan.Writes {
		texts = append(texts, string(write.Verb)+" "+write.Kind+" "+write.Name)
	}
	slices.Sort(texts)
	return plan, texts
}

func TestPlanUpgrade_ListsWrites(t *testing.T) {
	w := newWorld(t)
	c := protectedMaps().load(t)
	plan, writes := w.planned(w.request(c, "one", valuesOf("a=1")))
	equal(t, "the writes of an install", []string{"create ConfigMap a"}, writes)
	equal(t, "the revision", 1, plan.Revision)
	equal(t, "the number of objects", 0, len(w.configMaps()))

	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1", "c=1", "p=1"))))
	next := w.request(c, "two", valuesOf("a=2", "c=1", "d=1"))
	plan, writes = w.planned(next)
	equal(t, "the writes", []string{"change ConfigMap a", "create ConfigMap d", "delete ConfigMap b", "delete ConfigMap p"}, writes)
	equal(t, "the revision", 2, plan.Revision)
	if plan.Approval == nil || len(plan.Approval.Operations) != 1 || plan.Approved {
		t.Fatalf("the approval is %+v", plan.Approval)
	}
	equal(t, "the digest", w.waits("delete ConfigMap", w.upgrade, next), plan.Approval.Digest())
	next.Approve = plan.Approval.Digest()
	if plan, _ = w.planned(next); !plan.Approved {
		t.Error("the plan is not approved")
	}
	equal(t, "the objects", []string{"a=1", "b=1", "c=1", "p=1"}, w.configMaps())
	for _, write := range plan.Writes {
		if write.Name == "a" && (write.Verb != apply.Change || valueIn(write.Before) != "1" || valueIn(write.After) != "2") {
			t.Errorf("the change is from %q to %q", valueIn(write.Before), valueIn(write.After))
		}
	}
}

// valueIn returns the value of a ConfigMap.
func valueIn(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value
}
