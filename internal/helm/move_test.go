package helm

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// move returns the request for the uninstall before a move to an existing namespace.
func (w *world) move(c *chart.Chart, values map[string]any) Request {
	r := w.request(c, "", values)
	r.MoveTo = "default"
	return r
}

func (w *world) uninstall(r Request) error { return w.helm.Uninstall(w.Context(), r) }

func TestMove_WaitsForApproval(t *testing.T) {
	for name, set := range map[string]func(*Request){
		"default": func(*Request) {},
		"Off":     func(r *Request) { r.Guard.Mode = watches.GuardOff },
		"Warn":    func(r *Request) { r.Guard.Mode = watches.GuardWarn },
		"Never":   func(r *Request) { r.Approval = watches.ApprovalNever },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
			r := w.move(c, valuesOf("a=1"))
			set(&r)
			digest := w.waits("move the release from namespace "+w.namespace+" to default, which deletes and creates all its objects", w.uninstall, r)
			other := r
			other.MoveTo = "kube-public"
			if w.waits("to kube-public", w.uninstall, other) == digest {
				t.Error("the digest does not depend on the namespace")
			}
			other = r
			other.Approve = "another"
			w.waits("digest of another plan", w.uninstall, other)
			r.Approve = digest
			w.must(w.uninstall(r))
			equal(t, "the objects", []string{}, w.configMaps())
			equal(t, "the revisions", []string{}, w.statuses())
		})
	}
}

// The plan lists the guarded objects. The policy keep and the annotation protect have the
// same effect as in any uninstall.
func TestMove_ListsGuardedObjects(t *testing.T) {
	w := newWorld(t)
	claim := func(name, annotations string) string {
		return "\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	c := mapsChart().with("templates/claims.yaml", claim("data", "")+claim("kept", "helm.sh/resource-policy: keep")).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "p=1"))))
	w.protect("p", `"true"`)
	w.watch()
	err := w.uninstall(w.move(c, valuesOf("a=1", "p=1")))
	if !errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), "ConfigMap "+w.namespace+"/p") || !strings.Contains(err.Error(), "set the namespace back") {
		t.Errorf("the error is %v", err)
	}
	w.protect("p", "null")
	r := w.move(c, valuesOf("a=1", "p=1"))
	r.Approve = w.waits("delete PersistentVolumeClaim "+w.namespace+"/data", w.uninstall, r)
	var waiting *ApprovalError
	again := w.move(c, valuesOf("a=1", "p=1"))
	if err := w.uninstall(again); !errors.As(err, &waiting) || len(waiting.Plan.Operations) != 1 || waiting.Plan.Operations[0].UID == "" {
		t.Errorf("the error is %v, want a plan that deletes one object", err)
	}
	w.must(w.uninstall(r))
	w.watch()
	equal(t, "the objects", []string{}, w.configMaps())
}

// After an interruption, the uninstall is finished without another approval, because the
// record shows that it has begun.
func TestMove_FinishesUninstallAfterInterruption(t *testing.T) {
	c := mapsChart().load(t)
	begun := 0
	for at := int64(1); ; at++ {
		w := newWorld(t)
		w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))))
		r := w.move(c, valuesOf("a=1", "b=1"))
		r.Approve = w.waits("move", w.uninstall, r)
		p := &disturbance{at: at, dead: true}
		w.net.armed.Store(p)
		err := w.uninstall(r)
		if p.seen.Load() < at {
			w.must(err)
			break
		}
		w.restart()
		deleted := slices.ContainsFunc(writes(p.log()[:at-1]), func(request string) bool { return strings.HasPrefix(request, http.MethodDelete) })
		statuses := w.statuses()
		if deleted && len(statuses) > 0 {
			begun++
			equal(t, "the revisions", []string{"v1 uninstalling"}, statuses)
		}
		if len(statuses) == 0 || statuses[0] != "v1 uninstalling" {
			continue
		}
		unapproved := w.move(c, valuesOf("a=1", "b=1"))
		w.must(w.uninstall(unapproved))
		equal(t, "the objects", []string{}, w.configMaps())
		equal(t, "the revisions", []string{}, w.statuses())
	}
	if begun == 0 {
		t.Error("no uninstall was interrupted after it had deleted an object")
	}
}

// A request without an approval skips no hooks, even if the service account is missing.
func TestMove_WaitsWithoutServiceAccount(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	r := w.move(c, valuesOf("a=1"))
	r.ServiceAccount = "missing"
	r.Notifier = warnFunc(func(reason, message string) { t.Errorf("warning %s: %s", reason, message) })
	w.waits("move", w.uninstall, r)
}

// A release that cannot be installed in the other namespace is not uninstalled.
func TestMove_RefusedIfInstallWouldFail(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/fail.yaml", "{{ if .Values.bad }}{{ fail \"no such mode\" }}{{ end }}").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	w.watch()
	missing := w.move(c, valuesOf("a=1"))
	missing.MoveTo = "no-such-namespace"
	if err := w.uninstall(missing); err == nil || !strings.Contains(err.Error(), "the new namespace no-such-namespace of the release does not exist") {
		t.Errorf("namespace missing: the error is %v", err)
	}
	missing.CreateNamespace = true
	w.waits("to no-such-namespace", w.uninstall, missing)
	if err := w.uninstall(w.move(c, bad(valuesOf("a=1")))); !errors.Is(err, chart.ErrRender) || !strings.Contains(err.Error(), "no such mode") {
		t.Errorf("render fails: the error is %v", err)
	}
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
}

// A move does not delete the namespace, which may contain objects that stay.
func TestMove_LeavesCreatedNamespace(t *testing.T) {
	w := newWorld(t)
	w.moveToNewNamespace()
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.inNewNamespace(c)))
	r := w.inNewNamespace(c)
	r.MoveTo = "default"
	r.Approve = w.waits("move", w.uninstall, r)
	w.must(w.uninstall(r))
	if w.namespaceDeleted() {
		t.Error("it is deleted")
	}
}
