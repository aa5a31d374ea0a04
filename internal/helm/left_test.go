package helm

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

// forbids answers requests with a method and a part of the path as an API server without a
// rule for them.
func forbids(method, path string) *disturbance {
	return &disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method != method || !strings.Contains(request.URL.Path, path) {
			return next.RoundTrip(request)
		}
		body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
			"message": "forbidden: User \"operator\" cannot patch resource \"persistentvolumeclaims\""}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: request, Body: io.NopCloser(strings.NewReader(body)),
			Header: http.Header{"Content-Type": {"application/json"}},
		}, nil
	}}
}

// refer adds a reference to the custom resource to the claim "data", as older versions and the
// operator-sdk do. Unlabeled, the object has nothing else from its owner but Helm's marks.
func (w *world) refer(unlabeled bool) {
	w.Helper()
	labels := ""
	if unlabeled {
		labels = fmt.Sprintf(`"labels": {%q: null, %q: null}, "annotations": {%q: null}, `, api.LabelOwnerUID, api.LabelOperator, api.AnnotationOwner)
	}
	patch := fmt.Sprintf(`{"metadata": {%s"ownerReferences": [{"apiVersion": "app.example.com/v1", "kind": "Small", "name": "web", "uid": %q}]}}`, labels, w.owner.UID)
	_, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Patch(w.Context(), "data", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

// The garbage collector deletes what refers to the custom resource.
func TestOnDelete_RemovesReferences(t *testing.T) {
	for name, unlabeled := range map[string]bool{"of older versions": false, "of the operator-sdk": true} {
		for _, ownedOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, only owned objects: %v", name, ownedOnly), func(t *testing.T) {
				w, uid := dataWorld(t)
				w.refer(unlabeled)
				w.restart()
				r := w.deletion(dataChart())
				r.OwnedOnly = ownedOnly
				w.must(w.helm.Uninstall(t.Context(), r))
				w.isLeft(uid)
			})
		}
	}
}

// An object that the operator must not change stays as it is, unless the garbage collector
// would delete it.
func TestOnDelete_WithoutPermissionToPatch(t *testing.T) {
	w, uid := dataWorld(t)
	w.net.armed.Store(forbids(http.MethodPatch, "/persistentvolumeclaims/"))
	w.refer(false)
	if err := w.helm.Uninstall(t.Context(), w.deletion(dataChart())); err == nil || !strings.Contains(err.Error(), "cannot patch") {
		t.Errorf("with a reference: the error is %v", err)
	}
	equal(t, "the revisions", []string{"v1 uninstalling"}, w.statuses())
	_, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Patch(t.Context(), "data", types.MergePatchType, []byte(`{"metadata": {"ownerReferences": null}}`), metav1.PatchOptions{})
	w.must(err)
	w.restart()
	w.net.armed.Store(forbids(http.MethodPatch, "/persistentvolumeclaims/"))
	var events []string
	r := w.deletion(dataChart())
	r.Notifier = warnFunc(func(_, what string) { events = append(events, what) })
	w.must(w.helm.Uninstall(t.Context(), r))
	if claim := w.dataClaim(); claim == nil || claim.UID != uid {
		t.Error("the claim is deleted")
	}
	if len(events) != 1 || !strings.Contains(events[0], "without the label chartwright.dev/left: ") {
		t.Errorf("the events are %q", events)
	}
	equal(t, "the revisions", []string{}, w.statuses())
}

// A protected object of any kind stays, also if only the inventory has it.
func TestOnDelete_KeepsProtectedObject(t *testing.T) {
	w := newWorld(t)
	c := mapsChart()
	w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", valuesOf("a=1", "p=1"))))
	w.protect("p", `"true"`)
	w.watch()
	w.must(w.helm.Uninstall(t.Context(), w.deletion(c)))
	w.isReleased("after the uninstall", "p")

	// The object has only a reference, and the operator may delete only what it applied.
	w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", valuesOf("a=1", "p=1"))))
	bare := fmt.Sprintf(`{"metadata": {"labels": {%q: null, %q: null}, "annotations": {%q: null},
		"ownerReferences": [{"apiVersion": "app.example.com/v1", "kind": "Small", "name": "web", "uid": %q}]}}`, api.LabelOwnerUID, api.LabelOperator, api.AnnotationOwner, w.owner.UID)
	_, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "p", types.MergePatchType, []byte(bare), metav1.PatchOptions{})
	w.must(err)
	w.restart()
	r := w.deletion(c)
	r.OwnedOnly = true
	w.must(w.helm.Uninstall(t.Context(), r))
	if live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "p", metav1.GetOptions{}); err != nil || len(live.OwnerReferences) > 0 {
		t.Errorf("the protected object with a reference is %v, error %v", live, err)
	}
	list, err := w.plain.CoreV1().ConfigMaps(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: api.LabelLeft + ",!" + api.LabelOwnerUID})
	w.must(err)
	if len(list.Items) != 1 || list.Items[0].Name != "p" {
		t.Errorf("the marked objects are %v", list.Items)
	}
}

// Objects of hooks that hold data stay, and are announced as well.
func TestOnDelete_KeepsObjectsOfHooks(t *testing.T) {
	w := newWorld(t)
	hook := strings.Replace(claimManifest, "{name: data}", "{name: data, annotations: {helm.sh/hook: pre-install}}", 1)
	c := mapsChart().with("templates/hook.yaml", hook)
	w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", valuesOf("a=1"))))
	w.watch()
	var events []string
	r := w.deletion(c)
	r.Notifier = warnFunc(func(reason, _ string) { events = append(events, reason) })
	w.must(w.helm.Uninstall(t.Context(), r))
	if claim := w.dataClaim(); claim == nil || claim.Labels[api.LabelLeft] != "true" || claim.Labels[api.LabelHookOwnerUID] == "" {
		t.Errorf("the claim is %v", claim)
	}
	equal(t, "the events", []string{api.EventObjectLeft}, events)
}

// A StatefulSet with whenDeleted: Delete is deleted without its claims.
func TestOnDelete_KeepsClaimsOfStatefulSet(t *testing.T) {
	for name, test := range map[string]struct {
		set    func(*Request)
		stops  string
		claims int
	}{
		"default":             {func(*Request) {}, "", 2},
		"Delete":              {func(r *Request) { r.DeleteData = true }, "", 0},
		"forbidden":           {func(*Request) {}, http.MethodPatch, 0},
		"controller is away":  {func(*Request) {}, "controller", 2},
		"interrupted patches": {func(*Request) {}, "claims", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := setChart("")
			c["templates/set.yaml"] += "  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}\n"
			w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", nil)))
			sets := w.plain.AppsV1().StatefulSets(w.namespace)
			set, err := sets.Get(t.Context(), "web", metav1.GetOptions{})
			w.must(err)
			w.claim("data-web-0", map[string]string{"app": "web"}, nil)
			w.claim("data-web-7", map[string]string{"app": "web"}, nil)
			for _, claim := range w.claims() {
				patch := fmt.Sprintf(`{"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": %q}]}}`, set.UID)
				_, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Patch(t.Context(), claim, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				w.must(err)
			}
			// The controller observes each change at once.
			controller := func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/statefulsets/web") {
					if live, err := sets.Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
						live.Status.ObservedGeneration = live.Generation
						_, err = sets.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
						w.must(err)
					}
				}
				return response, err
			}
			r := w.deletion(c)
			test.set(&r)
			switch test.stops {
			case http.MethodPatch:
				w.net.armed.Store(forbids(http.MethodPatch, "/statefulsets/web"))
			case "controller":
				w.net.armed.Store(&disturbance{})
				if err := w.helm.Uninstall(t.Context(), r); err == nil || !strings.Contains(err.Error(), "keep the claims of StatefulSet") {
					t.Errorf("the error is %v", err)
				}
				w.net.armed.Store(&disturbance{answer: controller})
			case "claims":
				w.net.armed.Store(&disturbance{answer: func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
					if strings.HasSuffix(request.URL.Path, "/persistentvolumeclaims/data-web-7") {
						return nil, deadError{}
					}
					return controller(request, next)
				}})
				if err := w.helm.Uninstall(t.Context(), r); err == nil {
					t.Error("the uninstall succeeds")
				}
				w.net.armed.Store(&disturbance{answer: controller})
			default:
				w.net.armed.Store(&disturbance{answer: controller})
			}
			w.must(w.helm.Uninstall(t.Context(), r))
			_, err = sets.Get(t.Context(), "web", metav1.GetOptions{})
			if deleted := err != nil; deleted != (test.stops != http.MethodPatch) {
				t.Errorf("the StatefulSet is deleted: %v", deleted)
			}
			free := 0
			list, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
			w.must(err)
			for i := range list.Items {
				if len(list.Items[i].OwnerReferences) == 0 {
					free++
				}
			}
			equal(t, "the number of claims without a reference", test.claims, free)
		})
	}
}

// A namespace that was created for the release stays if something in it stays.
func TestRemoveNamespace_KeepsData(t *testing.T) {
	const keptManifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
	claims := func(w *world) { w.claim("data-web-0", nil, nil) }
	deletes := func(r *Request) { r.Guard.OnDelete = watches.OnDeleteDelete }
	for name, test := range map[string]struct {
		chart   files
		prepare func(*world)
		set     func(*Request)
		kept    string
	}{
		"guarded object":            {dataChart(), nil, nil, "objects that stay"},
		"claims of a StatefulSet":   {mapsChart(), claims, nil, "PersistentVolumeClaim data-web-0"},
		"claims and Delete":         {mapsChart(), claims, deletes, ""},
		"protected object":          {protectedMaps(), nil, nil, "objects that stay"},
		"object with a keep policy": {mapsChart().with("templates/kept.yaml", keptManifest), nil, deletes, "objects that stay"},
		"hook object that is kept":  {mapsChart().with("templates/hook.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {helm.sh/hook: pre-install}}\n"), nil, nil, "objects that stay"},
		"hook object that is not":   {mapsChart().with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, annotations: {helm.sh/hook: pre-install}}\n"), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.moveToNewNamespace()
			r := w.inNewNamespace(test.chart.load(t))
			r.Values = valuesOf("a=1", "p=1")
			w.must(w.helm.Install(t.Context(), r))
			w.watch()
			if test.prepare != nil {
				test.prepare(w)
			}
			var events []string
			r = w.deletion(test.chart)
			r.CreateNamespace = true
			r.Notifier = warnFunc(func(reason, what string) {
				if reason == api.EventNamespaceKept {
					events = append(events, what)
				}
			})
			if test.set != nil {
				test.set(&r)
			}
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the revisions", []string{}, w.statuses())
			if test.kept == "" {
				if !w.namespaceDeleted() {
					t.Error("the namespace stays")
				}
				return
			}
			if w.namespaceDeleted() {
				t.Error("the namespace is deleted")
			}
			equal(t, "the events", []string{"Namespace " + w.namespace + " was created for this release and is not deleted because it contains " + test.kept}, events)
		})
	}
}

// Only the first attempt may find an object that is in no manifest.
func TestRemoveNamespace_KeepsDataAfterInterruption(t *testing.T) {
	for at := int64(1); ; at++ {
		w := newWorld(t)
		w.moveToNewNamespace()
		r := w.inNewNamespace(protectedMaps().load(t))
		w.must(w.helm.Install(t.Context(), r))
		// Of a revision whose record is gone.
		left := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "labels": {%q: %q, %q: "chartwright"}, "annotations": {%q: "true"}}}`,
			api.LabelOwnerUID, w.owner.UID, api.LabelOperator, api.AnnotationProtect)
		_, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "p", types.ApplyPatchType, []byte(left), metav1.PatchOptions{FieldManager: api.FieldManager})
		w.must(err)
		w.watch()
		p := &disturbance{at: at, dead: true}
		w.net.armed.Store(p)
		r = w.deletion(protectedMaps())
		r.CreateNamespace = true
		err = w.helm.Uninstall(t.Context(), r)
		done := p.seen.Load() < at
		if done {
			w.must(err)
		}
		w.restart()
		if len(w.statuses()) > 0 {
			w.must(w.helm.Uninstall(t.Context(), r))
		}
		if w.namespaceDeleted() {
			t.Errorf("interrupted at request %d, the namespace is deleted", at)
		}
		if done {
			return
		}
	}
}

// The namespace of the release is never deleted, and no namespace together with the custom
// resource, whatever the settings are.
func TestNamespace_NeverDeletedWithRelease(t *testing.T) {
	const namespaces = "{{ range .Values.namespaces }}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: {{ . }}}\n{{ end }}"
	c := mapsChart().with("templates/namespaces.yaml", namespaces)
	named := func(names ...string) map[string]any {
		values, list := valuesOf("a=1"), []any{}
		for _, name := range names {
			list = append(list, name)
		}
		values["namespaces"] = list
		return values
	}
	exists := func(w *world, name string) bool {
		live, err := w.plain.CoreV1().Namespaces().Get(w.Context(), name, metav1.GetOptions{})
		return err == nil && live.DeletionTimestamp == nil
	}
	install := func(t *testing.T) (w *world, extra string) {
		w = newWorld(t)
		r := w.request(c.load(t), "one", named(w.namespace, w.namespace+"-extra"))
		r.Allow.ClusterScoped, r.TakeOwnership = []string{"Namespace"}, true
		w.must(w.helm.Install(t.Context(), r))
		w.watch()
		return w, w.namespace + "-extra"
	}
	for name, set := range map[string]func(*Request){
		"Keep":        func(*Request) {},
		"Delete":      func(r *Request) { r.Guard.OnDelete = watches.OnDeleteDelete },
		"Off":         func(r *Request) { r.Guard.Mode = watches.GuardOff },
		"delete-data": func(r *Request) { r.DeleteData = true },
	} {
		t.Run("uninstall with "+name, func(t *testing.T) {
			w, extra := install(t)
			r := w.deletion(c)
			r.Allow.ClusterScoped = []string{"Namespace"}
			set(&r)
			w.must(w.helm.Uninstall(t.Context(), r))
			if !exists(w, w.namespace) || !exists(w, extra) {
				t.Errorf("the namespaces exist: %v, %v", exists(w, w.namespace), exists(w, extra))
			}
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		w, extra := install(t)
		r := w.request(c.load(t), "two", named())
		r.Allow.ClusterScoped = []string{"Namespace"}
		err := w.upgrade(r)
		waiting, ok := errors.AsType[*ApprovalError](err)
		if !ok || len(waiting.Plan.Operations) != 1 || waiting.Plan.Operations[0].Name != extra {
			t.Fatalf("the error is %v, want a plan for %s only", err, extra)
		}
		r.Approve = waiting.Plan.Digest()
		w.must(w.upgrade(r))
		if !exists(w, w.namespace) || exists(w, extra) {
			t.Errorf("the namespaces exist: %v, %v", exists(w, w.namespace), exists(w, extra))
		}
	})
}

func TestOnDelete_WaitsForApproval(t *testing.T) {
	w, _ := dataWorld(t)
	r := w.deletion(dataChart())
	r.Guard.OnDelete = watches.OnDeleteApprove
	digest := w.waits("uninstall that would delete PersistentVolumeClaim "+w.namespace+"/data", w.uninstall, r)
	other := r
	other.Approve = "another"
	w.waits("digest of another plan", w.uninstall, other)
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
	r.Approve = digest
	w.must(w.uninstall(r))
	if w.dataClaim() != nil {
		t.Error("the claim stays")
	}
	equal(t, "the objects after the approval", []string{}, w.configMaps())
	equal(t, "the revisions", []string{}, w.statuses())
}

// An object that was protected after the approval stays. In a namespace that is being deleted,
// nothing waits.
func TestOnDelete_ApprovalCoversItsPlan(t *testing.T) {
	w, uid := dataWorld(t)
	r := w.deletion(dataChart())
	r.Guard.OnDelete = watches.OnDeleteApprove
	r.Approve = w.waits("uninstall", w.uninstall, r)
	w.protect("a", `"true"`)
	w.watch()
	w.waits("delete ConfigMap", w.uninstall, r)
	w.must(w.plain.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	w.must(w.uninstall(r))
	w.isLeft(uid)
}
