package release_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
)

func TestIndex_OwnedBy(t *testing.T) {
	w := newWatched()
	w.OnAdd(stored(1, "a", "1", "superseded"), true)
	w.OnAdd(stored(2, "b", "2", "deployed"), true)
	foreign := stored(1, "c", "3", "deployed")
	foreign.Name, foreign.Labels = "sh.helm.release.v1.db.v1", map[string]string{"name": "db", "owner": "helm", "status": "deployed", "version": "1"}
	w.OnAdd(foreign, true)

	owned := w.OwnedBy("cr-uid")
	if len(owned) != 2 || owned[0].Revision != 2 {
		t.Errorf("OwnedBy: %v", owned)
	}
	if got := w.OwnedBy(""); len(got) != 0 {
		t.Errorf("records without an owner have the owner %v", got)
	}
	// After a change of the owner, only the new owner finds the record.
	taken := stored(2, "b", "4", "deployed")
	taken.Labels[api.LabelOwnerUID] = "other-uid"
	w.OnUpdate(nil, taken)
	if a, b := w.OwnedBy("cr-uid"), w.OwnedBy("other-uid"); len(a) != 1 || len(b) != 1 {
		t.Errorf("after a change of the owner: %d of the old owner, %d of the new", len(a), len(b))
	}
}

// An uninstall may have begun before the operator stopped: the status does not matter.
func TestIndex_OwnerKindsWithAnyStatus(t *testing.T) {
	w := newWatched()
	for i, status := range []string{"superseded", "deployed", "failed", "pending-upgrade", "uninstalling", "uninstalled"} {
		m := stored(i+1, status, "1", status)
		m.Labels[api.LabelOperator] = "chartwright"
		m.Annotations[api.AnnotationOwner] = "Web" + strconv.Itoa(i) + ".shop.example.com/apps/web"
		w.OnAdd(m, true)
	}
	for i, operator := range []string{"other", "chartwright"} {
		m := stored(10+i, operator, "1", "deployed")
		m.Labels[api.LabelOperator] = operator
		m.Annotations[api.AnnotationOwner] = map[string]string{"other": "Web.other.example.com/apps/web", "chartwright": ""}[operator]
		w.OnAdd(m, true)
	}
	want := map[string]sets.Set[string]{}
	for i := range 6 {
		want["Web"+strconv.Itoa(i)+".shop.example.com"] = sets.New("apps")
	}
	if diff := cmp.Diff(want, w.OwnerKinds("chartwright")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The custom resource finds the records of the operator-sdk until Chartwright adopts
// them.
func TestIndex_ControlledBy(t *testing.T) {
	w := newWatched()
	theirs := func(resourceVersion string) *metav1.PartialObjectMetadata {
		m := stored(3, "a", resourceVersion, "deployed")
		m.Name = "sh.helm.release.v1.web.one.v3"
		m.Labels = map[string]string{"name": "web.one", "owner": "helm", "status": "deployed", "version": "3"}
		m.OwnerReferences = []metav1.OwnerReference{{UID: "sdk-uid", Controller: new(true)}}
		return m
	}
	w.OnAdd(theirs("1"), true)
	if got := w.ControlledBy("sdk-uid"); len(got) != 1 || got[0].Release != "web.one" || got[0].OwnerUID != "" {
		t.Errorf("ControlledBy: %+v", got)
	}
	if a, b := w.OwnedBy("sdk-uid"), w.ControlledBy(""); len(a)+len(b) > 0 {
		t.Errorf("owned %v, without a controller %v", a, b)
	}
	adopted := theirs("2")
	adopted.Labels[api.LabelOwnerUID] = "sdk-uid"
	w.OnUpdate(nil, adopted)
	if a, b := w.OwnedBy("sdk-uid"), w.ControlledBy("sdk-uid"); len(a) != 1 || len(b) != 0 {
		t.Errorf("after the adoption: owned %v, controlled %v", a, b)
	}
	w.OnDelete(adopted)
	again := theirs("3")
	again.UID = "b"
	w.OnAdd(again, false)
	w.OnDelete(again)
	if got := w.ControlledBy("sdk-uid"); len(got) > 0 {
		t.Errorf("found after the deletion: %v", got)
	}
}
