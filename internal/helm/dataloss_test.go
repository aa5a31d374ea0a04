package helm

import (
	"strings"
	"testing"
)

// The tests of this file try ways in which users, chart authors and other clients may lose data.

// With whenScaled: Delete, the StatefulSet controller deletes the claims of pods whose ordinals
// are no longer used.
func TestDataLoss_HigherOrdinal(t *testing.T) {
	w := newWorld(t)
	c := scalableSet()
	c["templates/set.yaml"] = strings.Replace(c["templates/set.yaml"], "  serviceName: web\n", "  serviceName: web\n  ordinals: {start: {{ .Values.start }}}\n", 1)
	values := func(replicas, start int) map[string]any {
		v := scaledTo(replicas, "1")
		v["start"] = start
		return v
	}
	w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", values(2, 1))))
	w.must(w.upgrade(w.request(c.load(t), "two", values(3, 0))))
	w.waits("2 replicas from ordinal 1 instead of 3 from ordinal 0", w.upgrade, w.request(c.load(t), "three", values(2, 1)))
	r := w.rollbackRequest(c.load(t), backTo(1, 2))
	r.Automatic = true
	w.must(w.helm.Rollback(t.Context(), r, 1))
	if set := w.set(); *set.Spec.Replicas != 3 || set.Spec.Ordinals != nil && set.Spec.Ordinals.Start != 0 {
		t.Errorf("after an automatic rollback: %d replicas, ordinals %v", *set.Spec.Replicas, set.Spec.Ordinals)
	}
}
