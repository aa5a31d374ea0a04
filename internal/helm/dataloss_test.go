package helm

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// The tests of this file try ways in which users, chart authors and other clients may lose data.

// warnings makes a request record the reasons of its events.
func warnings(r *Request) *[]string {
	found := &[]string{}
	r.Notifier = warnFunc(func(reason, _ string) { *found = append(*found, reason) })
	return found
}

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

// While a hook runs, a user replaces an object whose deletion was approved.
func TestDataLoss_ApprovedObjectIsReplaced(t *testing.T) {
	w := newWorld(t)
	c := protectedMaps().with("templates/hook.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-upgrade}}\n").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "p=1"))))
	w.watch()
	next := w.request(c, "two", valuesOf("a=2"))
	next.Approve = w.waits("delete ConfigMap", w.upgrade, next)
	maps := w.plain.CoreV1().ConfigMaps(w.namespace)
	restored, err := maps.Get(t.Context(), "p", metav1.GetOptions{})
	w.must(err)
	restored.UID, restored.ResourceVersion, restored.ManagedFields, restored.Data = "", "", nil, map[string]string{"value": "restored"}
	restore := sync.OnceFunc(func() {
		w.drop("p")
		_, err := maps.Create(t.Context(), restored, metav1.CreateOptions{FieldManager: "kubectl"})
		w.must(err)
		w.watch()
	})
	w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method == http.MethodPost && request.URL.Query().Get("dryRun") == "" && strings.HasSuffix(request.URL.Path, "/secrets") {
			restore()
		}
		return next.RoundTrip(request)
	}})
	events := warnings(&next)
	w.must(w.upgrade(next))
	if live, err := maps.Get(t.Context(), "p", metav1.GetOptions{}); err != nil || live.Data["value"] != "restored" {
		t.Errorf("the object is %v, error %v", live, err)
	}
	equal(t, "the events", []string{api.EventObjectLeft}, *events)
}
