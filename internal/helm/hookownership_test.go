package helm

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// hookedMap returns a chart with a ConfigMap "shared" that is a hook or a plain object.
// It is immutable, so a new value requires a new object.
func hookedMap() files {
	return mapsChart().with("templates/hooked.yaml", `
apiVersion: v1
kind: ConfigMap
metadata:
  name: shared
{{- with .Values.hook }}
  annotations: {helm.sh/hook: "{{ . }}"}
{{- end }}
immutable: true
data: {value: {{ .Values.value }}}
`)
}

func hooked(hook, value string) map[string]any {
	values := valuesOf("a=" + value)
	values["hook"], values["value"] = hook, value
	return values
}

func (w *world) shared() *corev1.ConfigMap {
	w.Helper()
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return live
}

// TestHook_BecomesPlainObject tests an upgrade and a rollback.
func TestHook_BecomesPlainObject(t *testing.T) {
	c := hookedMap().load(t)
	w := newWorld(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", hooked("", "one"))))
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", hooked("post-upgrade", "two"))))
	if live := w.shared(); live.Data["value"] != "two" || live.Labels[api.LabelHookOwnerUID] == "" {
		t.Fatalf("the object did not become a hook: %v, %v", live.Labels, live.Data)
	}
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "three", hooked("", "three"))))
	if live := w.shared(); live.Data["value"] != "three" || live.Labels[api.LabelOwnerUID] == "" || live.Labels[api.LabelHookOwnerUID] != "" {
		t.Errorf("after the upgrade: %v, %v", live.Labels, live.Data)
	}
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "four", hooked("post-upgrade", "four"))))
	w.must(w.helm.Rollback(t.Context(), w.rollbackRequest(c, backTo(1, 4)), 1))
	if live := w.shared(); live.Data["value"] != "one" || live.Labels[api.LabelOwnerUID] == "" {
		t.Errorf("after the rollback: %v, %v", live.Labels, live.Data)
	}
}

func TestHook_DeletesOnlyObjectsOfRelease(t *testing.T) {
	c := hookedMap().load(t)
	for name, foreign := range map[string]func(*world){
		"no owner":                func(w *world) { w.make("shared") },
		"another release":         func(w *world) { w.make("shared"); w.ofRelease("shared") },
		"another custom resource": func(w *world) { w.make("shared"); w.setForeignOwner("shared") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			foreign(w)
			before := w.shared()
			err := w.helm.Install(t.Context(), w.request(c, "one", hooked("pre-install", "one")))
			if err == nil || !strings.Contains(err.Error(), "hook ConfigMap "+w.namespace+"/shared: ") || !strings.Contains(err.Error(), "rename the hook") {
				t.Errorf("got %v, want an error that names the hook", err)
			}
			if after := w.shared(); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
				t.Error("the object was changed")
			}
			w.watch()
			w.drop("shared")
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", hooked("pre-upgrade", "two"))))
			if w.shared().Data["value"] != "two" {
				t.Error("the hook did not run after the name was free")
			}
		})
	}
}

// The helm CLI does not label hooks, so a hook may have created an object before the
// adoption of the release.
func TestHook_DeletesObjectsOfHelmCLI(t *testing.T) {
	c := hookedMap().load(t)
	w := newWorld(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", hooked("post-install", "one"))))
	live := w.shared()
	live.Labels, live.Annotations = nil, nil
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.must(w.helm.Upgrade(t.Context(), w.request(c, "two", hooked("post-upgrade", "two"))))
	if w.shared().Data["value"] != "two" {
		t.Error("the hook did not run again")
	}
}

// The administrator created the object while, according to the record, a hook of that
// name ran.
func TestHook_KeepsObjectOfAdministrator(t *testing.T) {
	c := hookedMap().load(t)
	w := newWorld(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", hooked("post-install", "one"))))
	w.drop("shared")
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Data: map[string]string{"value": "mine"}}
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), foreign, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	err := w.helm.Upgrade(t.Context(), w.request(c, "two", hooked("post-upgrade", "two")))
	if err == nil || !strings.Contains(err.Error(), "this release did not create it") {
		t.Errorf("error %v", err)
	}
	if w.shared().Data["value"] != "mine" {
		t.Error("it was replaced")
	}
}

func TestConflict_ExplainsForeignObjects(t *testing.T) {
	c := hookedMap().load(t)
	for name, test := range map[string]struct {
		make func(*world)
		want string
	}{
		"no owner":                {func(w *world) { w.make("shared") }, "exists and belongs to no release; rename one of the two (allow.takeOwnership is never)"},
		"another release":         {func(w *world) { w.make("shared"); w.ofRelease("shared") }, "belongs to release elsewhere/theirs; rename one of the two"},
		"another custom resource": {func(w *world) { w.make("shared"); w.setForeignOwner("shared") }, "belongs to "},
		"a hook that is in no record": {func(w *world) {
			w.make("shared")
			live := w.shared()
			live.Labels = map[string]string{api.LabelHookOwnerUID: string(w.owner.UID)}
			if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Update(w.Context(), live, metav1.UpdateOptions{}); err != nil {
				w.Fatal(err)
			}
		}, "was created by a hook of this release and is left over; delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.make(w)
			err := w.helm.Install(t.Context(), w.request(c, "one", hooked("", "one")))
			if want := "ConfigMap " + w.namespace + "/shared " + test.want; !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if strings.Contains(err.Error(), "label validation error") {
				t.Errorf("the error still has Helm's text: %v", err)
			}
			equal(t, "the revisions", []string{}, w.statuses())
		})
	}
}

// The install fails before the first write, as do an upgrade and a repair.
func TestInstall_RejectsNumbersOutOfRange(t *testing.T) {
	c := manifestChart().load(t)
	w := newWorld(t)
	of := func(replicas string) map[string]any {
		return map[string]any{"manifest": ofSpec("replicas: "+replicas+", ") + "\n---\n" + configMap("data: {a: '"+replicas+"'}")}
	}
	want := "Deployment " + w.namespace + "/x: spec.replicas: number out of range: got 99999999999, want a whole number from -2147483648 to 2147483647"
	for step := range 2 {
		p := &disturbance{}
		w.net.armed.Store(p)
		var err error
		if step == 0 {
			err = w.helm.Install(t.Context(), w.request(c, "one", of("99999999999")))
		} else {
			err = w.helm.Upgrade(t.Context(), w.request(c, "three", of("99999999999")))
		}
		w.net.armed.Store(nil)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if written := writes(p.log()); len(written) > 0 {
			t.Errorf("it wrote %v", written)
		}
		if step == 0 {
			w.must(w.helm.Install(t.Context(), w.request(c, "two", of("2"))))
		}
	}
}

// A leftover of an earlier run must not block the next run, even if its record is gone.
// Objects with another controller, and objects with data, are kept.
func TestCheckHookOwner_AcceptsJobsAndPodsWithoutOwner(t *testing.T) {
	for _, test := range []struct {
		name, apiVersion, kind string
		owners                 []metav1.OwnerReference
		refused                bool
	}{
		{"a Job", "batch/v1", "Job", nil, false},
		{"a Pod", "v1", "Pod", nil, false},
		{"a Job of a CronJob", "batch/v1", "Job", []metav1.OwnerReference{{Kind: "CronJob", Name: "nightly"}}, true},
		{"a ConfigMap", "v1", "ConfigMap", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := &kubeClient{Request: Request{Target: Target{Release: "web", Namespace: "apps"}}, driver: &release.Driver{}}
			o := apply.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": test.apiVersion, "kind": test.kind, "metadata": map[string]any{"name": "a", "namespace": "apps"},
			}}}
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "apps", OwnerReferences: test.owners}}
			if err := k.checkHookOwner(o, live); (err != nil) != test.refused {
				t.Errorf("error %v", err)
			}
		})
	}
}
