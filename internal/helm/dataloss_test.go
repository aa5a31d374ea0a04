package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches"
)

// The tests of this file try ways in which users, chart authors and other clients may lose data.

// existing returns the metadata of an object, and fails the test if it does not exist or is being
// deleted.
func (w *world) existing(namespace, group, resource, name string) *metav1.PartialObjectMetadata {
	w.Helper()
	client, err := metadata.NewForConfig(apiServer.config)
	w.must(err)
	live, err := client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).Namespace(namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	if live.DeletionTimestamp != nil {
		w.Fatalf("%s %s is being deleted", resource, name)
	}
	return live
}

// warnings makes a request record the reasons of its events.
func warnings(r *Request) *[]string {
	found := &[]string{}
	r.Notifier = warnFunc(func(reason, _ string) { *found = append(*found, reason) })
	return found
}

// An interrupted "helm uninstall" is finished, and the release is installed again. The custom
// resource still exists, so the claims stay.
func TestDataLoss_InterruptedHelmUninstall(t *testing.T) {
	w := newWorld(t)
	c := setChart(api.ClaimsDelete).load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", nil)))
	w.claim("data-web-0", map[string]string{"app": "web"}, nil)
	w.must(w.helm.Uninstall(t.Context(), w.request(c, "", nil)))
	equal(t, "the claims", []string{"data-web-0"}, w.claims())
}

// By default, Helm deletes the object of a hook before the hook runs again.
func TestDataLoss_HookRunsAgain(t *testing.T) {
	const annotations = `annotations: {helm.sh/hook: "pre-install,pre-upgrade,pre-rollback"}`
	claim := strings.Replace(claimManifest, "{name: data}", "{name: data, "+annotations+"}", 1)
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ .Release.Namespace }}-hook', " + annotations + "}\n"
	for _, mode := range []watches.GuardMode{watches.GuardEnforce, watches.GuardOff} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().with("templates/claim.yaml", claim).with("templates/namespace.yaml", namespace).load(t)
			request := func(digest string) Request {
				r := w.request(c, digest, valuesOf("a="+digest))
				r.Allow.ClusterScoped, r.Guard.Mode = []string{"Namespace"}, mode
				return r
			}
			uids := func() []types.UID {
				return []types.UID{w.existing(w.namespace, "", "persistentvolumeclaims", "data").UID, w.existing("", "", "namespaces", w.namespace+"-hook").UID}
			}
			w.must(w.helm.Install(t.Context(), request("one")))
			before := uids()
			next := request("two")
			events := warnings(&next)
			w.must(w.upgrade(next))
			equal(t, "the events", []string{api.EventObjectLeft, api.EventObjectLeft}, *events)
			equal(t, "the UIDs after an upgrade", before, uids())
			back := request("one")
			back.Marks = backTo(1, 2)
			w.must(w.helm.Rollback(t.Context(), back, 1))
			equal(t, "the UIDs after a rollback", before, uids())
		})
	}
}

// A chart turns a claim of a hook into a plain claim. The claim stays, and belongs to the release
// once a user has given it Helm's marks. The change back waits for an approval.
func TestDataLoss_ClaimOfHookBecomesPlain(t *testing.T) {
	w := newWorld(t)
	hook := mapsChart().with("templates/claim.yaml", strings.Replace(claimManifest, "{name: data}", "{name: data, annotations: {helm.sh/hook: pre-install}}", 1)).load(t)
	plain := dataChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(hook, "one", valuesOf("a=1"))))
	uid := w.dataClaim().UID
	// No controller removes the finalizer of the claim, so a deletion would never end.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := w.helm.Upgrade(ctx, w.request(plain, "two", valuesOf("a=2")))
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "to keep it, set Helm's label and annotations") {
		t.Errorf("the error is %v", err)
	}
	marks := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}, "annotations": {%q: "web", %q: %q}}}`,
		api.LabelManagedBy, api.ManagedByHelm, api.AnnotationReleaseName, api.AnnotationReleaseNamespace, w.namespace)
	_, err = w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Patch(t.Context(), "data", types.MergePatchType, []byte(marks), metav1.PatchOptions{})
	w.must(err)
	w.must(w.upgrade(w.request(plain, "two", valuesOf("a=2"))))
	w.waits("delete PersistentVolumeClaim "+w.namespace+"/data", w.upgrade, w.request(hook, "three", valuesOf("a=3")))
	if claim := w.dataClaim(); claim == nil || claim.UID != uid {
		t.Errorf("the claim is %v", claim)
	}
}

// A chart moves a claim into a list.
func TestDataLoss_ClaimInList(t *testing.T) {
	w, uid := dataWorld(t)
	list := mapsChart().with("templates/claim.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(strings.TrimSpace(claimManifest), "\n", "\n  ")+"\n")
	w.must(w.upgrade(w.request(list.load(t), "two", valuesOf("a=2"))))
	w.waits("delete PersistentVolumeClaim", w.upgrade, w.request(mapsChart().load(t), "three", valuesOf("a=3")))
	if claim := w.dataClaim(); claim == nil || claim.UID != uid {
		t.Errorf("the claim is %v", claim)
	}
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
	w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", values(1, 2))))
	w.must(w.upgrade(w.request(c.load(t), "two", values(3, 1))))
	w.waits("1 replicas from ordinal 2 instead of 3 from ordinal 1", w.upgrade, w.request(c.load(t), "three", values(1, 2)))
	r := w.rollbackRequest(c.load(t), backTo(1, 2))
	r.Automatic = true
	w.must(w.helm.Rollback(t.Context(), r, 1))
	if set := w.set(); *set.Spec.Replicas != 3 || set.Spec.Ordinals == nil || set.Spec.Ordinals.Start != 1 {
		t.Errorf("after an automatic rollback: %d replicas, ordinals %v", *set.Spec.Replicas, set.Spec.Ordinals)
	}
}

// A user protects the object of a hook, such as generated credentials.
func TestDataLoss_ProtectedObjectOfHook(t *testing.T) {
	for name, test := range map[string]struct{ next, err string }{
		"hook runs again":             {"post-upgrade", ""},
		"hook becomes a plain object": {"", "was created by a hook of this release"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := hookedMap().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", hooked("post-install", "one"))))
			w.protect("shared", `"true"`)
			w.watch()
			before := w.shared()
			err := w.upgrade(w.request(c, "two", hooked(test.next, "two")))
			if test.err == "" {
				w.must(err)
			} else if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("the error is %v", err)
			}
			if after := w.shared(); after.UID != before.UID || after.Data["value"] != "one" {
				t.Errorf("the object was replaced: %v", after)
			}
		})
	}
}

// A chart moves a CRD from its templates to crds/.
func TestDataLoss_CRDMovesToFolder(t *testing.T) {
	for _, mode := range []watches.GuardMode{watches.GuardEnforce, watches.GuardOff} {
		for _, policy := range []watches.CRDPolicy{"", watches.CRDsReplace, watches.CRDsSkip} {
			t.Run(fmt.Sprintf("%s with policy %q", mode, policy), func(t *testing.T) {
				w := newWorld(t)
				group := w.namespace + ".example.com"
				definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + "}\n" +
					"spec:\n  group: " + group + "\n  scope: Namespaced\n  names: {kind: Thing, plural: things, singular: thing}\n" +
					"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n"
				r := w.request(mapsChart().with("templates/crd.yaml", definition).load(t), "one", valuesOf("a=1"))
				r.Allow.ClusterScoped, r.Guard.Mode, r.CRDs = []string{"CustomResourceDefinition.apiextensions.k8s.io"}, mode, policy
				w.must(w.helm.Install(t.Context(), r))
				w.watch()
				uid := w.existing("", "apiextensions.k8s.io", "customresourcedefinitions", "things."+group).UID
				r.Chart = mapsChart().with("crds/crd.yaml", definition).load(t)
				for _, digest := range []string{"two", "three"} {
					r.Values, r.Digests.Input = valuesOf("a="+digest), digest
					w.must(w.upgrade(r))
					if live := w.existing("", "apiextensions.k8s.io", "customresourcedefinitions", "things."+group); live.UID != uid {
						t.Error("the CRD was replaced")
					}
				}
				deletion := w.deletion(mapsChart())
				deletion.Guard.Mode = mode
				w.must(w.helm.Uninstall(t.Context(), deletion))
				w.existing("", "apiextensions.k8s.io", "customresourcedefinitions", "things."+group)
			})
		}
	}
}

// The watch has not reported the last change of an object when the custom resource is deleted.
func TestDataLoss_UninstallWithLateWatch(t *testing.T) {
	protect := func(w *world) { w.protect("shared", `"true"`) }
	for name, test := range map[string]struct {
		change   func(*world)
		onDelete watches.OnDelete
	}{
		"protected, Keep":   {protect, watches.OnDeleteKeep},
		"protected, Delete": {protect, watches.OnDeleteDelete},
		"taken over":        {takeovers["taken over by another release"], watches.OnDeleteKeep},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart()
			w.must(w.helm.Install(t.Context(), w.request(c.load(t), "one", valuesOf("a=1", "shared=1"))))
			w.watch()
			uid := w.shared().UID
			test.change(w)
			r := w.deletion(c)
			r.Guard.OnDelete = test.onDelete
			events := warnings(&r)
			w.must(w.uninstall(r))
			if w.shared().UID != uid {
				t.Error("the object was replaced")
			}
			equal(t, "the events", []string{api.EventObjectLeft}, *events)
			equal(t, "the revisions", []string{}, w.statuses())
		})
	}
}

// The namespace of the custom resource is deleted. The release is in another namespace, so its
// protected object stays with onDelete: Delete, too.
func TestDataLoss_ProtectedInOtherNamespace(t *testing.T) {
	w := newWorld(t)
	team := w.namespace + "-team"
	_, err := w.plain.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, metav1.CreateOptions{})
	w.must(err)
	w.owner.Namespace = team
	w.must(w.helm.Install(t.Context(), w.request(protectedMaps().load(t), "one", valuesOf("a=1", "p=1"))))
	w.watch()
	r := w.deletion(protectedMaps())
	r.Guard.OnDelete = watches.OnDeleteDelete
	if err := w.uninstall(r); !errors.Is(err, ErrProtected) {
		t.Errorf("the error is %v", err)
	}
	w.must(w.plain.CoreV1().Namespaces().Delete(t.Context(), team, metav1.DeleteOptions{}))
	w.must(w.uninstall(r))
	w.isReleased("after the uninstall", "p")
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
