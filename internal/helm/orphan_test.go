package helm

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// Objects and records are not changed, except that they no longer refer to the custom
// resource.
func TestOrphan(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
	for _, live := range w.liveConfigMaps() {
		if len(live.OwnerReferences) != 1 {
			t.Fatalf("%s has the owners %v", live.Name, live.OwnerReferences)
		}
	}
	p := &disturbance{at: 2, dead: true}
	w.net.armed.Store(p)
	if err := w.helm.Orphan(t.Context(), w.request(c, "", nil)); !errors.As(err, new(deadError)) {
		t.Errorf("without an API server: %v", err)
	}
	w.net.armed.Store(nil)
	if len(w.objects.OwnedBy(w.owner.UID)) != 2 {
		t.Error("objects with ownerReferences were forgotten")
	}

	w.must(w.helm.Orphan(t.Context(), w.request(c, "", nil)))
	for _, live := range w.liveConfigMaps() {
		if len(live.OwnerReferences) > 0 || live.Labels[api.LabelOwnerUID] != string(w.owner.UID) {
			t.Errorf("%s has the owners %v and the labels %v", live.Name, live.OwnerReferences, live.Labels)
		}
	}
	equal(t, "the objects", []string{"a=1", "b=1"}, w.configMaps())
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
	w.must(w.helm.Orphan(t.Context(), w.request(c, "", nil)))

	// A custom resource of the same name continues the release.
	w.owner.UID = "99999999-2222-3333-4444-555555555555"
	w.restart()
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))))
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || live.Data["value"] != "2" || len(live.OwnerReferences) != 1 || live.OwnerReferences[0].UID != w.owner.UID {
		t.Errorf("%v, %+v", err, live)
	}
}
