package helm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// mapsChart returns a chart with one ConfigMap for each key of .Values.maps.
func mapsChart() files {
	return small().
		with("templates/config.yaml", "{{ range $name, $value := .Values.maps }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $name }}}\ndata: {value: {{ $value | quote }}}\n{{ end }}{{ if .Values.fail }}{{ fail .Values.fail }}{{ end }}").
		with("values.yaml", "").
		with("values.schema.json", `{"properties": {"maps": {"additionalProperties": {"type": "string"}}, "fail": {"type": "string"}}}`)
}

func valuesOf(pairs ...string) map[string]any {
	set := map[string]any{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return map[string]any{"maps": set}
}

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRelease_InstallUpgradeUninstall(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)

	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the install", []string{"v1 deployed"}, w.statuses())
	equal(t, "its objects", []string{"a=1", "b=1"}, w.configMaps())

	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "its labels", map[string]string{
		"app.kubernetes.io/managed-by": "Helm", api.LabelOwnerUID: string(w.owner.UID), api.LabelOperator: "chartwright",
	}, live.Labels)
	equal(t, "its owner", []metav1.OwnerReference{{APIVersion: "app.example.com/v1", Kind: "Small", Name: "web", UID: w.owner.UID}}, live.OwnerReferences)
	if live.Annotations["meta.helm.sh/release-name"] != "web" || live.Annotations["meta.helm.sh/release-namespace"] != w.namespace || live.Annotations[api.AnnotationApplied] == "" {
		t.Errorf("its annotations: %v", live.Annotations)
	}

	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2", "c=2"))); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the upgrade", []string{"v2 deployed", "v1 superseded"}, w.statuses())
	equal(t, "its objects", []string{"a=2", "c=2"}, w.configMaps())

	newest := w.index.History(w.namespace, "web")[0]
	if !newest.Genuine() || newest.OwnerUID != w.owner.UID || newest.InputDigest != "two" || newest.Chart != "small" || newest.ChartVersion != "1.2.3" || newest.Deployed.IsZero() {
		t.Errorf("the record: %+v", newest)
	}
	stored, err := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Get(newest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Version != 2 || stored.Info.Notes != "It says .\n" || strings.Contains(stored.Manifest, api.Domain) {
		t.Errorf("Helm reads revision %d, notes %q, manifest\n%s", stored.Version, stored.Info.Notes, stored.Manifest)
	}

	if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the uninstall", []string{}, w.statuses())
	equal(t, "its objects", []string{}, w.configMaps())

	if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); err != nil {
		t.Errorf("uninstall without a release: %v", err)
	}
}

func TestIndex_UpdatedByActions(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	know := func(want ...string) {
		t.Helper()
		got := []string{}
		for _, r := range w.index.History(w.namespace, "web") {
			got = append(got, r.Status)
		}
		equal(t, "the index", append([]string{}, want...), got)
	}
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))) }, []string{"deployed"}},
		{func() error { return w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))) }, []string{"deployed", "superseded"}},
		{func() error {
			return w.helm.MarkFailed(t.Context(), w.request(c, "two", nil), w.index.History(w.namespace, "web")[0], "Interrupted")
		}, []string{"failed", "superseded"}},
		{func() error { return w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))) }, []string{"deployed", "superseded"}},
		{func() error { return w.helm.Uninstall(t.Context(), w.request(c, "", nil)) }, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		know(step.want...)
	}
}

func TestVerify(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1", "b=1"))
	if err := w.helm.Verify(t.Context(), r); !errors.Is(err, release.ErrStale) {
		t.Errorf("without a release: %v, want ErrStale", err)
	}
	if err := w.helm.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	maps := w.plain.CoreV1().ConfigMaps(w.namespace)
	before, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Verify(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	after, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the record of an earlier revision was written", before.ResourceVersion, after.ResourceVersion)
	equal(t, "the objects", []string{"a=1", "b=1"}, w.configMaps())
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
}

func TestActions_RefuseBeforeFirstWrite(t *testing.T) {
	loaded := mapsChart()
	for _, test := range []struct {
		name   string
		values map[string]any
		folder files
		want   error
		text   string
	}{
		{"values that the schema rejects", map[string]any{"maps": map[string]any{"a": int64(2)}}, loaded, chart.ErrInvalidValues, "spec.maps.a: got number, want string"},
		{"a template that fails", map[string]any{"maps": map[string]any{"a": "2"}, "fail": "not like this"}, loaded, chart.ErrRender, "not like this"},
		{"a manifest that is not YAML", nil, loaded.with("templates/bad.yaml", "a: ["), chart.ErrRender, "bad.yaml"},
		{"an object without a name", nil, loaded.with("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\n"), chart.ErrRender, "a ConfigMap has no metadata.name"},
		{"an object of an unknown kind", nil, loaded.with("templates/bad.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"), chart.ErrRender, "no matches for kind"},
		{"two objects with the same name", nil, loaded.with("templates/bad.yaml", strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\n", 2)), chart.ErrRender, "/twice is rendered twice, in small/templates/bad.yaml:"},
		{"a hook without a name", nil, loaded.with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\n"), chart.ErrRender, "a ConfigMap has no metadata.name"},
		{"a foreign object", valuesOf("a=2", "foreign=2"), loaded, ErrConflict, "foreign"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Data: map[string]string{"value": "mine"}}
			if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			broken := test.folder.load(t)
			check := func(when string, action func() error, statuses, objects []string) {
				t.Helper()
				p := &disturbance{}
				w.net.armed.Store(p)
				err := action()
				w.net.armed.Store(nil)
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("%s: error %v, want %v with %q", when, err, test.want, test.text)
				}
				for _, other := range []error{chart.ErrInvalidValues, chart.ErrRender, ErrConflict, release.ErrStale, release.ErrTooLarge} {
					if !errors.Is(test.want, other) && errors.Is(err, other) {
						t.Errorf("%s: the error also matches %v", when, other)
					}
				}
				if got := writes(p.log()); len(got) > 0 {
					t.Errorf("%s: it wrote %v", when, got)
				}
				equal(t, when+": the revisions", statuses, w.statuses())
				equal(t, when+": the objects", objects, w.configMaps())
			}
			check("install", func() error { return w.helm.Install(t.Context(), w.request(broken, "bad", test.values)) }, []string{}, []string{})

			if err := w.helm.Install(t.Context(), w.request(loaded.load(t), "good", valuesOf("a=1"))); err != nil {
				t.Fatal(err)
			}
			check("upgrade", func() error { return w.helm.Upgrade(t.Context(), w.request(broken, "bad", test.values)) }, []string{"v1 deployed"}, []string{"a=1"})
			live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "foreign", metav1.GetOptions{})
			if err != nil || live.Data["value"] != "mine" || len(live.Labels) > 0 {
				t.Errorf("the foreign object: %+v, %v", live, err)
			}
		})
	}
}

func TestInstall_RefusesTooLargeRelease(t *testing.T) {
	w := newWorld(t)
	noise := make([]string, 0, 40)
	for i := range 40 {
		var text strings.Builder
		for j := range 1500 {
			text.WriteString(string(types.UID(release.NewStamp(w.owner, release.Digests{}, release.Marks{}).Action)))
			_ = j
		}
		noise = append(noise, "m"+strings.Repeat("x", i+1)+"="+text.String())
	}
	err := w.helm.Install(t.Context(), w.request(mapsChart().load(t), "one", valuesOf(noise...)))
	if !errors.Is(err, release.ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
	equal(t, "the revisions", []string{}, w.statuses())
	equal(t, "the objects", []string{}, w.configMaps())
}

func TestActions_StaleIndex(t *testing.T) {
	c := mapsChart().load(t)
	t.Run("installed concurrently", func(t *testing.T) {
		w := newWorld(t)
		if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
			t.Fatal(err)
		}
		behind := release.NewIndex(func(release.Record) {})
		w.helm.config.Index = behind
		err := w.helm.Install(t.Context(), w.request(c, "two", valuesOf("a=2")))
		if !errors.Is(err, release.ErrStale) {
			t.Errorf("error %v, want ErrStale", err)
		}
		w.helm.config.Index = w.index
		equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
		equal(t, "the objects", []string{"a=1"}, w.configMaps())
	})
	t.Run("upgraded concurrently", func(t *testing.T) {
		w := newWorld(t)
		if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
			t.Fatal(err)
		}
		rls := aRelease()
		rls.Version = 2
		if err := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Create("sh.helm.release.v1.web.v2", rls); err != nil {
			t.Fatal(err)
		}
		if err := w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))); !errors.Is(err, release.ErrStale) {
			t.Errorf("error %v, want ErrStale", err)
		}
		equal(t, "the objects", []string{"a=1"}, w.configMaps())
	})
	t.Run("record deleted concurrently", func(t *testing.T) {
		for name, action := range map[string]func(*world) error{
			"upgrade":   func(w *world) error { return w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))) },
			"uninstall": func(w *world) error { return w.helm.Uninstall(t.Context(), w.request(c, "", nil)) },
		} {
			w := newWorld(t)
			if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
				t.Fatal(err)
			}
			if err := w.plain.CoreV1().Secrets(w.namespace).Delete(t.Context(), "sh.helm.release.v1.web.v1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := action(w); !errors.Is(err, release.ErrStale) {
				t.Errorf("%s: error %v, want ErrStale", name, err)
			}
			if left := w.index.History(w.namespace, "web"); len(left) > 0 {
				t.Errorf("%s: the index still holds the record", name)
			}
		}
	})
	t.Run("record changed concurrently", func(t *testing.T) {
		w := newWorld(t)
		if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
			t.Fatal(err)
		}
		// The record changes between the read and the write of the upgrade.
		p := &disturbance{at: 3, before: func() {
			patch := []byte(`{"metadata": {"labels": {"touched": "true"}}}`)
			if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}}
		w.net.armed.Store(p)
		err := w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2")))
		w.net.armed.Store(nil)
		if !errors.Is(err, release.ErrStale) {
			t.Errorf("error %v, want ErrStale, after %v", err, p.log())
		}
		w.settle(w.request(c, "two", valuesOf("a=2")), false)
		equal(t, "the objects", []string{"a=2"}, w.configMaps())
	})
}

// Helm treats a history that it cannot read as empty, and an uninstall of an empty
// history as successful.
func TestUninstall_FailsOnCorruptRecord(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]any{"release": []byte("damaged")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), "sh.helm.release.v1.web.v1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2"))); !errors.Is(err, release.ErrStale) || !errors.Is(err, release.ErrCorrupt) {
		t.Errorf("upgrade: %v, want ErrCorrupt and ErrStale", err)
	}
	equal(t, "the objects", []string{"a=1"}, w.configMaps())
	aside, err := w.plain.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=" + release.OwnerCorrupt})
	if err != nil {
		t.Fatal(err)
	}
	if len(aside.Items) != 1 || string(aside.Items[0].Data["release"]) != "damaged" {
		t.Errorf("the corrupt record is not kept: %v", aside.Items)
	}
	if owner := w.request(c, "two", nil).Owner; !apply.HasOwnerReference(&aside.Items[0], owner.UID) {
		t.Error("the copy, which may contain secrets, stays when the custom resource is deleted")
	}
	w.settle(w.request(c, "two", valuesOf("a=2")), false)
	equal(t, "the objects", []string{"a=2"}, w.configMaps())
}

func TestUninstall_KeepsObjectsOfOtherRelease(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1", "b=1"))); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"metadata": {"labels": {"` + api.LabelOwnerUID + `": "another"}, "annotations": {"` + api.AnnotationOwner + `": "Small.app.example.com/elsewhere/web"}}}`)
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); err != nil {
		t.Fatal(err)
	}
	equal(t, "the objects", []string{"b=1"}, w.configMaps())
	equal(t, "the revisions", []string{}, w.statuses())
}

func TestUninstall_KeepsObjectsWithKeepPolicy(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/kept.yaml", "{{ if not .Values.dropped }}apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\ndata: {value: k}\n{{ end }}").load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(live.OwnerReferences) > 0 {
		t.Error("the garbage collector would delete an object with the keep policy")
	}
	without := valuesOf("a=2")
	without["dropped"] = true
	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", without)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after an upgrade without it", []string{"a=2", "kept=k"}, w.configMaps())
	if err := w.helm.Upgrade(t.Context(), w.request(c, "three", valuesOf("a=3"))); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Uninstall(t.Context(), w.request(c, "", nil)); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the uninstall", []string{"kept=k"}, w.configMaps())
}
