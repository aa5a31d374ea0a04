package helm

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// scalableSet returns a chart with a StatefulSet whose scale-downs delete claims, and, if the
// values say so, an object that names it.
func scalableSet() files {
	return small().with("templates/set.yaml", `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}
  selector: {matchLabels: {app: web}}
  serviceName: web
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:{{ .Values.greeting }}"}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`).with("templates/budget.yaml", `{{ if .Values.budget }}apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, annotations: {for: "StatefulSet web"}}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
{{ end }}`)
}

func scaledTo(replicas int, image string) map[string]any {
	return map[string]any{"replicas": replicas, "greeting": image}
}

// set returns the live StatefulSet.
func (w *world) set() *appsv1.StatefulSet {
	w.Helper()
	live, err := w.plain.AppsV1().StatefulSets(w.namespace).Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return live
}

// asUser patches the StatefulSet as a user does with kubectl.
func (w *world) asUser(patch string) {
	w.Helper()
	_, err := w.plain.AppsV1().StatefulSets(w.namespace).Patch(w.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) expectSet(what string, replicas int32, image string) {
	w.Helper()
	if live := w.set(); *live.Spec.Replicas != replicas || live.Spec.Template.Spec.Containers[0].Image != "web:"+image {
		w.Errorf("%s: %d replicas of %s, want %d of web:%s", what, *live.Spec.Replicas, live.Spec.Template.Spec.Containers[0].Image, replicas, image)
	}
}

func TestGuard_CorrectionsKeepReplicas(t *testing.T) {
	key := func(w *world) apply.Key {
		return apply.Key{Group: "apps", Kind: "StatefulSet", Namespace: w.namespace, Name: "web"}
	}
	for name, correct := range map[string]func(*world, Request) error{
		"repair": func(w *world, r Request) error {
			_, err := w.helm.Repair(w.Context(), r, map[apply.Key]bool{key(w): true})
			return err
		},
		"verification":                    func(w *world, r Request) error { return w.helm.Verify(w.Context(), r) },
		"verification by another process": func(w *world, r Request) error { w.restart(); return w.helm.Verify(w.Context(), r) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := scalableSet().load(t)
			r := w.request(c, "one", scaledTo(3, "one"))
			w.must(w.helm.Install(t.Context(), r))
			w.asUser(`{"spec": {"replicas": 5, "template": {"spec": {"containers": [{"name": "web", "image": "web:other"}]}}}}`)
			for range 2 {
				err := correct(w, r)
				if !errors.Is(err, ErrApprovalRequired) || !strings.Contains(err.Error(), "StatefulSet "+w.namespace+"/web: 3 replicas instead of 5") {
					t.Errorf("got error %v, want ErrApprovalRequired with the StatefulSet", err)
				}
				w.expectSet("after the "+name, 5, "one")
				if !w.objects.Drifted(w.owner.UID, key(w)) {
					t.Error("the replicas are no drift any longer")
				}
				if uid := w.objects.ExpectedUID(w.owner.UID, key(w)); uid != w.set().UID {
					t.Errorf("the expected UID is %q", uid)
				}
			}
			// The user accepts that the claims are deleted.
			w.asUser(`{"spec": {"replicas": 3}}`)
			if err := correct(w, r); err != nil {
				t.Errorf("after the scale-down: %v", err)
			}
			w.expectSet("after the scale-down", 3, "one")
			if w.objects.Drifted(w.owner.UID, key(w)) {
				t.Error("the StatefulSet still counts as drifted")
			}
			w.asUser(`{"spec": {"replicas": 1}}`)
			w.must(correct(w, r))
			w.expectSet("after a scale-up", 3, "one")
		})
	}
}

// Replicas that the operator does not set are those of others, and are neither kept nor reported.
func TestGuard_ReplicasOfOthersAreNoScaleDown(t *testing.T) {
	noReplicas := scalableSet().with("templates/set.yaml", strings.Replace(scalableSet()["templates/set.yaml"], "  replicas: {{ .Values.replicas }}\n", "", 1))
	ignore := []watches.DriftIgnore{{Kind: "StatefulSet", Paths: []string{"/spec/replicas"}}}
	for name, test := range map[string]struct {
		chart  files
		ignore []watches.DriftIgnore
	}{"ignored": {scalableSet(), ignore}, "not in the chart": {noReplicas, nil}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := test.chart.load(t)
			request := func(digest, image string) Request {
				r := w.request(c, digest, scaledTo(3, image))
				r.Ignore = test.ignore
				r.Notifier = warnFunc(func(reason, what string) { t.Errorf("warning %s: %s", reason, what) })
				return r
			}
			w.must(w.helm.Install(t.Context(), request("one", "one")))
			if apply.SetsReplicas(w.set()) {
				t.Error("the operator owns the replicas")
			}
			w.asUser(`{"spec": {"replicas": 5}}`)
			if err := w.helm.Verify(t.Context(), request("one", "one")); err != nil {
				t.Errorf("verification: %v", err)
			}
			w.expectSet("after a verification", 5, "one")
			w.must(w.upgrade(request("two", "two")))
			w.expectSet("after an upgrade", 5, "two")
			w.restart()
			if err := w.helm.Verify(t.Context(), request("two", "two")); err != nil {
				t.Errorf("verification by another process: %v", err)
			}
			w.expectSet("after a verification by another process", 5, "two")
		})
	}
}

// A user has set the policy with which a scale-down deletes claims.
func TestGuard_PolicyOfOthersDeletesClaims(t *testing.T) {
	w := newWorld(t)
	set := strings.Replace(scalableSet()["templates/set.yaml"], "  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}\n", "", 1)
	c := scalableSet().with("templates/set.yaml", set).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", scaledTo(3, "one"))))
	w.must(w.upgrade(w.request(c, "two", scaledTo(2, "one"))))
	w.asUser(`{"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}`)
	w.waits("scale down StatefulSet", w.upgrade, w.request(c, "three", scaledTo(1, "one")))
	w.expectSet("before the approval", 2, "one")
}

func TestGuard_AutomaticRollbackKeepsReplicas(t *testing.T) {
	w := newWorld(t)
	c := scalableSet().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", scaledTo(3, "one"))))
	w.must(w.upgrade(w.request(c, "two", scaledTo(5, "two"))))
	w.waits("rollback to revision 1 that would scale down StatefulSet", func(r Request) error { return w.helm.Rollback(t.Context(), r, 1) }, w.rollbackRequest(c, backTo(1, 2)))

	var warnings []string
	r := w.rollbackRequest(c, backTo(1, 2))
	r.Automatic = true
	r.Notifier = warnFunc(func(reason, what string) { warnings = append(warnings, reason+": "+what) })
	w.must(w.helm.Rollback(t.Context(), r, 1))
	w.expectSet("after the rollback", 5, "one")
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], api.EventObjectLeft+": StatefulSet "+w.namespace+"/web keeps its replicas") {
		t.Errorf("the warnings are %v", warnings)
	}
	warnings = nil
	verify := w.request(c, "one", scaledTo(3, "one"))
	verify.Notifier = r.Notifier
	w.must(w.helm.Verify(t.Context(), verify))
	w.expectSet("after a verification", 5, "one")
	if len(warnings) > 0 {
		t.Errorf("the verification warns again: %v", warnings)
	}

	next := func() Request { return w.request(c, "three", scaledTo(3, "one")) }
	approved := next()
	approved.Approve = w.waits("scale down StatefulSet", w.upgrade, next())
	w.expectSet("before the approval", 5, "one")
	w.must(w.upgrade(approved))
	w.expectSet("after the approval", 3, "one")
}

// undiscovered is a mapper that cannot read the kinds of one group.
type undiscovered struct {
	meta.RESTMapper
	group string
}

func (u undiscovered) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Group == u.group {
		return nil, apierrors.NewServiceUnavailable("etcd has no leader")
	}
	return u.RESTMapper.RESTMapping(gk, versions...)
}

// TestGuard_ErrorsStopTheAction covers errors of requests that the check needs: the action must
// not continue as if there were no guarded operation.
func TestGuard_ErrorsStopTheAction(t *testing.T) {
	w := newWorld(t)
	c := scalableSet().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", scaledTo(3, "one"))))
	next := func() Request {
		values := scaledTo(1, "one")
		values["budget"] = true
		return w.request(c, "two", values)
	}
	counted := &disturbance{}
	w.net.armed.Store(counted)
	if err := w.upgrade(next()); !errors.Is(err, ErrApprovalRequired) {
		t.Fatalf("without an error of a request: %v, want ErrApprovalRequired", err)
	}
	w.net.armed.Store(nil)
	mapper := w.helm.config.Mapper
	w.helm.config.Mapper = undiscovered{mapper, "policy"}
	err := w.upgrade(next())
	if !apierrors.IsServiceUnavailable(err) || strings.Contains(err.Error(), "cannot be rendered") {
		t.Errorf("discovery fails: got error %v, want ServiceUnavailable", err)
	}
	w.expectSet("after an error of discovery", 3, "one")
	w.helm.config.Mapper = mapper
	for number := range len(counted.log()) {
		sent := 0
		w.net.armed.Store(&disturbance{fails: func(*http.Request) bool { sent++; return sent == number+1 }})
		err := w.upgrade(next())
		w.net.armed.Store(nil)
		if err == nil {
			t.Errorf("request %d fails: the upgrade succeeded", number+1)
		}
		w.expectSet("after the failure of a request", 3, "one")
	}
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
}
