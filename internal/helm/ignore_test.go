package helm

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/watches"
)

// A claim that was resized cannot be made smaller again.
func TestIgnoredFields_NotInDryRun(t *testing.T) {
	w := newWorld(t)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Provisioner: "example.com/disk", AllowVolumeExpansion: new(true)}
	if _, err := w.plain.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := small().with("templates/claim.yaml", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, labels: {word: {{ .Values.word }}}}
spec: {storageClassName: `+w.namespace+`, accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`).load(t)
	request := func(digest, word string) Request {
		r := w.request(c, digest, map[string]any{"word": word})
		r.Ignore = []watches.DriftIgnore{{Kind: "PersistentVolumeClaim", Paths: []string{"/spec/resources/requests/storage"}}}
		return r
	}
	claims := w.plain.CoreV1().PersistentVolumeClaims(w.namespace)
	patch := func(body string, subresources ...string) {
		t.Helper()
		if _, err := claims.Patch(t.Context(), "disk", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "resizer"}, subresources...); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(word, storage string) {
		t.Helper()
		live, err := claims.Get(t.Context(), "disk", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := live.Spec.Resources.Requests[corev1.ResourceStorage]; live.Labels["word"] != word || got.String() != storage {
			t.Errorf("it is labeled %s and asks for %s, want %s and %s", live.Labels["word"], got.String(), word, storage)
		}
	}
	w.must(w.helm.Install(t.Context(), request("one", "one")))
	patch(`{"status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}}`, "status")
	patch(`{"spec": {"resources": {"requests": {"storage": "20Gi"}}}}`)
	patch(`{"status": {"capacity": {"storage": "20Gi"}}}`, "status")

	w.must(w.helm.Upgrade(t.Context(), request("two", "two")))
	expect("two", "20Gi")
	back := request("one", "one")
	back.Marks = backTo(1, 2)
	w.must(w.helm.Rollback(t.Context(), back, 1))
	expect("one", "20Gi")

	// A new object gets the rendered value.
	if err := claims.Delete(t.Context(), "disk", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	patch(`{"metadata": {"finalizers": null}}`)
	w.restart()
	w.must(w.helm.Upgrade(t.Context(), request("three", "three")))
	expect("three", "10Gi")
}

// Force recreates the object; other managers can change the fields afterwards.
func TestIgnoredFields_SetWhenObjectRecreated(t *testing.T) {
	w := newWorld(t)
	c := small().with("templates/config.yaml", `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, annotations: {example.com/by: chart}}
data: {value: {{ .Values.value }}}
immutable: true
`).load(t)
	request := func(value string) Request {
		r := w.request(c, value, map[string]any{"value": value})
		r.Ignore = []watches.DriftIgnore{{Paths: []string{"/metadata/annotations/example.com~1by"}}}
		r.Force = true
		return r
	}
	w.must(w.helm.Install(t.Context(), request("one")))
	first := w.uid("a")
	w.must(w.helm.Upgrade(t.Context(), request("two")))
	maps := w.plain.CoreV1().ConfigMaps(w.namespace)
	live, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if by := live.Annotations["example.com/by"]; live.UID == first || live.Data["value"] != "two" || by != "chart" {
		t.Errorf("recreated: %v, value %s, managed by %q, want two and chart", live.UID != first, live.Data["value"], by)
	}
	patch := []byte(`{"metadata": {"annotations": {"example.com/by": "others"}}}`)
	if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "others"}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	if drift := w.objects.Drift(w.owner.UID); len(drift) > 0 {
		t.Errorf("it counts as drift: %v", drift)
	}
}
