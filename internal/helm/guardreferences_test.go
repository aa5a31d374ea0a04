package helm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const claimManifest = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

// references returns how many ownerReferences the claim and the ConfigMap "a" have.
func (w *world) references() (claim, config int) {
	w.Helper()
	data, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.Context(), "data", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	a, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "a", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return len(data.OwnerReferences), len(a.OwnerReferences)
}

// The garbage collector must not delete guarded objects without the operator.
func TestGuard_GuardedObjectsHaveNoReference(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/claim.yaml", claimManifest).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	if claim, config := w.references(); claim != 0 || config != 1 {
		t.Errorf("the claim has %d references and the ConfigMap %d", claim, config)
	}
	if stored := w.newest().Inventory.References; stored == nil || *stored != 1 {
		t.Errorf("the record has %v references, want 1", stored)
	}
}

// An object that an older version applied, or whose kind was not guarded then, loses the
// reference at its next apply.
func TestGuard_ExistingObjectLosesReferenceAtNextApply(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/claim.yaml", claimManifest).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.watch()
	guarded := func(digest, value string) Request {
		r := w.request(c, digest, valuesOf("a="+value))
		r.Guard.Kinds = []string{"ConfigMap"}
		return r
	}
	watched := &disturbance{}
	w.net.armed.Store(watched)
	if _, err := w.helm.Repair(t.Context(), guarded("one", "1"), nil); err != nil {
		t.Fatal(err)
	}
	w.net.armed.Store(nil)
	if written := writes(watched.log()); len(written) > 0 {
		t.Errorf("the new rules cause the writes %v", written)
	}
	if _, config := w.references(); config != 1 {
		t.Errorf("before the next apply, the ConfigMap has %d references", config)
	}
	w.must(w.upgrade(guarded("two", "2")))
	if _, config := w.references(); config != 0 {
		t.Errorf("after the next apply, the ConfigMap has %d references", config)
	}
}
