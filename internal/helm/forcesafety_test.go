package helm

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
)

// claimingSet returns a chart with a StatefulSet that has a claim template if .Values.claims is
// set.
func claimingSet() files {
	return small().with("templates/set.yaml", `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  serviceName: web
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
  {{- if .Values.claims }}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  {{- end }}
`)
}

func claiming(set bool) map[string]any { return map[string]any{"claims": set} }

// The guard protects the old or the new StatefulSet. Both lead to a plan.
func TestForce_ChangedClaimTemplatesNeedApproval(t *testing.T) {
	for name, added := range map[string]bool{"added": true, "removed": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := claimingSet().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", claiming(!added))))
			before := w.set().UID
			var warnings []string
			next := func() Request { return w.forced(c, "two", claiming(added), &warnings) }
			digest := w.waits("recreate StatefulSet "+w.namespace+"/web", w.upgrade, next())
			if w.set().UID != before {
				t.Fatal("it was recreated without an approval")
			}
			if !added {
				// Without a garbage collector, the finalizer for orphaning stays.
				return
			}
			if err := w.upgrade(w.request(c, "two", claiming(added))); !errors.Is(err, ErrRefused) {
				t.Errorf("without force: %v, want ErrRefused", err)
			}
			approved := next()
			approved.Approve = digest
			w.must(w.upgrade(approved))
			if live := w.set(); live.UID == before || len(live.Spec.VolumeClaimTemplates) != 1 {
				t.Errorf("it has %d claim templates, recreated: %v", len(live.Spec.VolumeClaimTemplates), live.UID != before)
			}
			equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
			if len(warnings) != 1 || !strings.Contains(warnings[0], "Its pods are deleted, too") {
				t.Errorf("the warnings are %q", warnings)
			}
		})
	}
}

func withService() files {
	return mapsChart().with("templates/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {{ .Values.service | toJson }}\n")
}

func serviceOf(spec map[string]any) map[string]any {
	spec["ports"] = []any{map[string]any{"port": int64(80)}}
	return map[string]any{"service": spec}
}

// A Service that cannot be created stays.
func TestForce_ImpossibleServiceStays(t *testing.T) {
	w := newWorld(t)
	c := withService().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", serviceOf(map[string]any{"type": "NodePort"}))))
	read := func() (uid, address string) {
		live, err := w.plain.CoreV1().Services(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return string(live.UID), live.Spec.ClusterIP
	}
	uid, address := read()
	var warnings []string
	err := w.helm.Upgrade(t.Context(), w.forced(c, "two", serviceOf(map[string]any{"type": "NodePort", "clusterIP": "None"}), &warnings))
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "spec.clusterIPs[0]") || len(warnings) > 0 {
		t.Errorf("got error %v and warnings %q, want ErrRefused with the field", err, warnings)
	}
	if nowUID, now := read(); nowUID != uid || now != address {
		t.Errorf("the Service was recreated: address %s, was %s", now, address)
	}
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())

	w.must(w.helm.Upgrade(t.Context(), w.forced(c, "three", serviceOf(map[string]any{"type": "LoadBalancer", "loadBalancerClass": "example.com/a"}), &warnings)))
	uid, _ = read()
	w.must(w.helm.Upgrade(t.Context(), w.forced(c, "four", serviceOf(map[string]any{"type": "LoadBalancer", "loadBalancerClass": "example.com/b"}), &warnings)))
	if nowUID, now := read(); nowUID == uid || now != address {
		t.Errorf("recreated: %v, address %s, want %s", nowUID != uid, now, address)
	}
}

// rejectCreation answers the creation of a ConfigMap, after its deletion, with a rejection.
func rejectCreation(name string) *disturbance {
	var deleted, rejected atomic.Bool
	return &disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/configmaps/"+name) {
			switch {
			case request.Method == http.MethodDelete:
				deleted.Store(true)
			case request.Method == http.MethodPatch && deleted.Load() && !rejected.Swap(true):
				body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "exceeded quota", "code": 403}`
				return &http.Response{
					StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": []string{"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: request,
				}, nil
			}
		}
		return next.RoundTrip(request)
	}}
}

func TestForce_RestoresObjectIfNewOneIsRejected(t *testing.T) {
	w := newWorld(t)
	c := freezingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", frozen(valuesOf("a=1", "b=1")))))
	w.watch()
	before := w.uid("a")
	var warnings []string
	r := w.forced(c, "two", frozen(valuesOf("a=2", "b=1")), &warnings)
	w.net.armed.Store(rejectCreation("a"))
	err := w.helm.Upgrade(t.Context(), r)
	w.net.armed.Store(nil)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota") || !strings.Contains(err.Error(), "the previous object was created again") {
		t.Errorf("got error %v, want the cause and the state", err)
	}
	equal(t, "the objects", []string{"a=1", "b=1"}, w.configMaps())
	equal(t, "the revisions", []string{"v2 failed", "v1 deployed"}, w.statuses())
	if w.uid("a") == before {
		t.Error("it was not deleted")
	}
	w.settle(r, false)
	equal(t, "the objects after the next attempt", []string{"a=2", "b=1"}, w.configMaps())
}

// An outage while the operator checks whether an object can be created is no rejection.
func TestForce_OutageDuringCheckIsNoRejection(t *testing.T) {
	w := newWorld(t)
	c := freezingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", frozen(valuesOf("a=1")))))
	w.watch()
	before := w.uid("a")
	w.net.armed.Store(&disturbance{fails: func(request *http.Request) bool {
		// The check uses another name.
		return request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/configmaps/a-")
	}})
	var warnings []string
	err := w.helm.Upgrade(t.Context(), w.forced(c, "two", frozen(valuesOf("a=2")), &warnings))
	w.net.armed.Store(nil)
	if err == nil || errors.Is(err, ErrRefused) || w.uid("a") != before {
		t.Errorf("got error %v, recreated: %v, want another error than ErrRefused", err, w.uid("a") != before)
	}
}

// Wherever the process ends, the next one ends with the new object.
func TestForce_InterruptedAtEachRequest(t *testing.T) {
	c := freezingChart().load(t)
	install := func(w *world) Request {
		w.must(w.helm.Install(t.Context(), w.request(c, "one", frozen(valuesOf("a=1", "b=1")))))
		w.watch()
		r := w.request(c, "two", frozen(valuesOf("a=2", "b=1")))
		r.Force = true
		return r
	}
	w, count := newWorld(t), &disturbance{}
	r := install(w)
	w.net.armed.Store(count)
	w.must(w.helm.Upgrade(t.Context(), r))
	w.net.armed.Store(nil)
	requests := count.log()
	for i, request := range requests {
		w := newWorld(t)
		r := install(w)
		b := w.uid("b")
		w.net.armed.Store(&disturbance{at: int64(i + 1), dead: true})
		_ = w.helm.Upgrade(t.Context(), r)
		w.restart()
		w.settle(r, false)
		equal(t, request+": the objects", []string{"a=2", "b=1"}, w.configMaps())
		if w.uid("b") != b {
			t.Errorf("%s: another object was recreated", request)
		}
		checkDone(t, w, request+": ", false)
	}
	if len(requests) < 10 {
		t.Errorf("the requests are %v", requests)
	}
}

// The message begins with the object and the field, contains no pod template, and names the
// annotation if it helps.
func TestUpgrade_RefusalNamesFieldAndRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		manifest, before, after, want string
		force                         bool
	}{
		"a Deployment": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: it}\nspec: {selector: {matchLabels: {app: VALUE}}, template: {metadata: {labels: {app: VALUE}}, spec: {containers: [{name: c, image: i}]}}}",
			"one", "two", "Deployment NS/it: spec.selector: ", true,
		},
		"a Job": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: it}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: VALUE}]}}}",
			"one", "two", "Job NS/it: spec.template: field is immutable", true,
		},
		"a guarded StatefulSet": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: it}\nspec: {serviceName: VALUE, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}",
			"one", "two", "StatefulSet NS/it: spec.serviceName: Invalid value: \"two\": field is immutable", true,
		},
		"a PersistentVolumeClaim": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: it}\nspec: {storageClassName: VALUE, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			"one", "two", "PersistentVolumeClaim NS/it: spec: Forbidden: spec is immutable", false,
		},
		"an invalid object": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec: {ports: [{port: VALUE}]}",
			"80", "-1", "Service NS/it: spec.ports[0].port: Invalid value: -1: ", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			load := func(value string) *chart.Chart {
				return small().with("templates/it.yaml", strings.ReplaceAll(test.manifest, "VALUE", value)).load(t)
			}
			w.must(w.helm.Install(t.Context(), w.request(load(test.before), "one", nil)))
			err := w.helm.Upgrade(t.Context(), w.request(load(test.after), "two", nil))
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("got error %v, want ErrRefused", err)
			}
			text := err.Error()
			if want := strings.ReplaceAll(test.want, "NS", w.namespace); !strings.HasPrefix(text, want) || len(text) > 500 || !strings.HasSuffix(text, "no object was changed)") {
				t.Errorf("the message has %d bytes, want at most 500 that begin with %q: %s", len(text), want, text)
			}
			if strings.Contains(text, api.AnnotationForce) != test.force {
				t.Errorf("the message names force: %v, want %v: %s", !test.force, test.force, text)
			}
		})
	}
}
