package helm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

// protectedMaps returns a chart that protects the ConfigMaps whose names begin with "p".
func protectedMaps() files {
	return mapsChart().with("templates/config.yaml", "{{ range $name, $value := .Values.maps }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $name }}\n"+
		"{{ if hasPrefix \"p\" $name }}  annotations: {chartwright.dev/protect: \"true\"}\n{{ end }}data: {value: {{ $value | quote }}}\n{{ end }}")
}

// waits runs an action that must wait for an approval without a write, and returns the
// digest of its plan.
func (w *world) waits(what string, do func(Request) error, r Request) string {
	w.Helper()
	w.watch()
	watched := &disturbance{}
	w.net.armed.Store(watched)
	err := do(r)
	w.net.armed.Store(nil)
	waiting, ok := errors.AsType[*ApprovalError](err)
	if !ok || !errors.Is(err, ErrApprovalRequired) || !strings.Contains(err.Error(), what) {
		w.Fatalf("the error is %v, want an ApprovalError with %q", err, what)
	}
	if written := writes(watched.log()); len(written) > 0 {
		w.Errorf("before the approval, the action wrote %v", written)
	}
	return waiting.Plan.Digest()
}

func (w *world) upgrade(r Request) error { return w.helm.Upgrade(w.Context(), r) }

// protect sets the annotation on a live ConfigMap as a user does.
func (w *world) protect(name, value string) {
	w.Helper()
	patch := []byte(`{"metadata": {"annotations": {"chartwright.dev/protect": ` + value + `}}}`)
	// The watch does not report the annotation yet.
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

func TestGuard_UpgradeWaitsForApproval(t *testing.T) {
	w := newWorld(t)
	c := protectedMaps().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "p1=1", "p2=1"))))
	next := func() Request { return w.request(c, "two", valuesOf("a=2", "p2=2")) }
	digest := w.waits("delete ConfigMap "+w.namespace+"/p1", w.upgrade, next())
	equal(t, "the objects", []string{"a=1", "p1=1", "p2=1"}, w.configMaps())

	other := next()
	other.Approve = "another"
	if again := w.waits("digest of another plan", w.upgrade, other); again != digest {
		t.Errorf("the digest is %s, then %s", digest, again)
	}
	approved := next()
	approved.Approve = digest
	w.must(w.upgrade(approved))
	equal(t, "the objects", []string{"a=2", "p2=2"}, w.configMaps())
	equal(t, "the approval on the record", digest, w.newest().Approved)
}

// With approval: Always, no change that a user requests happens without an approval, and the
// plan names each object that is recreated.
func TestApproval_AlwaysCoversRollbackAndForce(t *testing.T) {
	for name, mode := range map[string]watches.GuardMode{"Enforce": watches.GuardEnforce, "Off": watches.GuardOff} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := freezingChart().load(t)
			var warnings []string
			request := func(value string) Request {
				r := w.forced(c, value, frozen(valuesOf("a="+value)), &warnings)
				r.Guard.Mode, r.Approval = mode, watches.ApprovalAlways
				return r
			}
			back := func(r Request) error { return w.helm.Rollback(w.Context(), r, 1) }
			recreates := "recreate ConfigMap " + w.namespace + "/a (the kind has approval: Always)"
			w.must(w.helm.Install(t.Context(), request("1")))

			r := request("2")
			r.Approve = w.waits("upgrade that would "+recreates, w.upgrade, r)
			w.must(w.upgrade(r))
			equal(t, "the objects after the upgrade", []string{"a=2"}, w.configMaps())

			r = request("2")
			r.Marks = backTo(1, 2)
			r.Approve = w.waits("rollback to revision 1 that would "+recreates, back, r)
			w.must(back(r))
			equal(t, "the objects after the rollback", []string{"a=1"}, w.configMaps())
			if len(warnings) != 2 {
				t.Errorf("the warnings are %q", warnings)
			}

			// An automatic rollback waits for no approval.
			r = request("2")
			r.Approve = w.waits(recreates, w.upgrade, r)
			w.must(w.upgrade(r))
			r = request("2")
			r.Automatic, r.Marks = true, backTo(1, 4)
			w.must(back(r))
			equal(t, "the objects after the automatic rollback", []string{"a=1"}, w.configMaps())
		})
	}
}

func TestGuard_UserProtectsLiveObject(t *testing.T) {
	for name, seen := range map[string]bool{"known": true, "annotation not observed": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
			w.watch()
			w.protect("a", `"true"`)
			r := w.request(c, "two", valuesOf("b=2"))
			if seen {
				w.waits("delete ConfigMap "+w.namespace+"/a", w.upgrade, r)
				equal(t, "the objects", []string{"a=1", "b=1"}, w.configMaps())
				return
			}
			var warnings []string
			r.Notifier = warnFunc(func(reason, _ string) { warnings = append(warnings, reason) })
			w.must(w.upgrade(r))
			equal(t, "the objects", []string{"a=1", "b=2"}, w.configMaps())
			equal(t, "the warnings", []string{api.EventObjectLeft}, warnings)
		})
	}
}

// A rollback that no user requests does not wait. The guarded object stays until an
// upgrade or rollback is approved; a verification does not delete it either.
func TestGuard_AutomaticRollbackLeavesObject(t *testing.T) {
	w := newWorld(t)
	c := protectedMaps().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.must(w.upgrade(w.request(c, "two", valuesOf("a=2", "p=2"))))
	w.waits("rollback to revision 1 that would delete ConfigMap", func(r Request) error { return w.helm.Rollback(t.Context(), r, 1) }, w.rollbackRequest(c, backTo(1, 2)))

	r := w.rollbackRequest(c, backTo(1, 2))
	r.Automatic = true
	var warnings []string
	r.Notifier = warnFunc(func(reason, _ string) { warnings = append(warnings, reason) })
	w.must(w.helm.Rollback(t.Context(), r, 1))
	equal(t, "the objects", []string{"a=1", "p=2"}, w.configMaps())
	equal(t, "the warnings", []string{api.EventObjectLeft}, warnings)
	w.must(w.helm.Verify(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	equal(t, "the objects after a verification", []string{"a=1", "p=2"}, w.configMaps())

	approved := w.request(c, "three", valuesOf("a=3"))
	approved.Approve = w.waits("delete ConfigMap", w.upgrade, w.request(c, "three", valuesOf("a=3")))
	w.must(w.upgrade(approved))
	equal(t, "the objects after the approval", []string{"a=3"}, w.configMaps())
}

func TestGuard_ProtectedObjectStopsUninstall(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"known":   func(*world) {},
		"restart": (*world).restart,
		"unknown to inventory": func(w *world) {
			for _, state := range w.objects.OwnedBy(w.owner.UID) {
				w.objects.Remove(state)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := protectedMaps().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "p=1"))))
			w.watch()
			prepare(w)
			r := w.request(c, "", nil)
			r.Deleting, r.Guard.OnDelete = true, watches.OnDeleteDelete
			err := w.helm.Uninstall(t.Context(), r)
			if stopped, ok := errors.AsType[*ProtectedError](err); !ok || len(stopped.Objects) != 1 || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/p") {
				t.Errorf("the error is %v", err)
			}
			equal(t, "the objects", []string{"a=1", "p=1"}, w.configMaps())
			equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
			w.protect("p", "null")
			w.watch()
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the objects", []string{}, w.configMaps())
		})
	}
}

// The guard costs no request if the release has no guarded object, or keeps all of them.
func TestGuard_CostsNoRequestWithoutCandidate(t *testing.T) {
	for name, values := range map[string][]string{"no guarded object": {"a", "b"}, "guarded object stays": {"a", "b", "p"}, "forced": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			requests := map[watches.GuardMode][]string{}
			for _, mode := range []watches.GuardMode{watches.GuardOff, watches.GuardEnforce} {
				w := newWorld(t)
				c := protectedMaps().load(t)
				of := func(value string, names ...string) map[string]any {
					pairs := make([]string, len(names))
					for i, name := range names {
						pairs[i] = name + "=" + value
					}
					return valuesOf(pairs...)
				}
				watched := &disturbance{}
				w.net.armed.Store(watched)
				for i, do := range []func(Request) error{
					func(r Request) error { return w.helm.Install(t.Context(), r) }, w.upgrade, w.upgrade,
					func(r Request) error { return w.helm.Rollback(t.Context(), r, 2) },
				} {
					names := values
					if i == 2 {
						// An object that is not guarded is deleted.
						names = slices.DeleteFunc(slices.Clone(values), func(name string) bool { return name == "b" })
					}
					step := string(rune('1' + i))
					r := w.request(c, step, of(step, names...))
					r.Guard.Mode, r.Force = mode, name == "forced"
					w.must(do(r))
				}
				w.net.armed.Store(nil)
				for _, request := range watched.log() {
					requests[mode] = append(requests[mode], strings.ReplaceAll(request, w.namespace, "ns"))
				}
				// A rollback reads the same records in another order.
				slices.Sort(requests[mode])
			}
			equal(t, "the requests", requests[watches.GuardOff], requests[watches.GuardEnforce])
		})
	}
}
