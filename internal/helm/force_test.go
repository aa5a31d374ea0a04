package helm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// freezingChart is mapsChart with ConfigMaps that are immutable if .Values.frozen is
// set.
func freezingChart() files {
	return mapsChart().with("templates/config.yaml", "{{ range $name, $value := .Values.maps }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $name }}}\ndata: {{ if $.Values.invalid }}{'not a key': x}{{ else }}{value: {{ $value | quote }}}{{ end }}\n{{ if $.Values.frozen }}immutable: true{{ end }}\n{{ end }}")
}

func frozen(values map[string]any) map[string]any {
	values["frozen"] = true
	return values
}

// uid returns the UID of a ConfigMap.
func (w *world) uid(name string) types.UID {
	w.Helper()
	live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return live.UID
}

// forced returns a request with Force, which adds the messages of warnings to warnings.
func (w *world) forced(c *chart.Chart, digest string, values map[string]any, warnings *[]string) Request {
	r := w.request(c, digest, values)
	r.Force = true
	r.Notifier = warnFunc(func(reason, what string) { *warnings = append(*warnings, reason+": "+what) })
	return r
}

func TestForce(t *testing.T) {
	w := newWorld(t)
	c := freezingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", frozen(valuesOf("a=1", "b=1")))))
	a, b := w.uid("a"), w.uid("b")
	if err := w.helm.Upgrade(t.Context(), w.request(c, "two", frozen(valuesOf("a=2", "b=1")))); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("without force: %v, want ErrRefused", err)
	}
	equal(t, "the revisions without force", []string{"v1 deployed"}, w.statuses())
	if w.uid("a") != a {
		t.Error("it was recreated without force")
	}

	var warnings []string
	w.must(w.helm.Upgrade(t.Context(), w.forced(c, "two", frozen(valuesOf("a=2", "b=1")), &warnings)))
	equal(t, "the objects", []string{"a=2", "b=1"}, w.configMaps())
	equal(t, "the warnings", []string{api.EventForced + ": ConfigMap " + w.namespace + "/a could not be changed and is deleted and created again"}, warnings)
	if w.uid("a") == a || w.uid("b") != b {
		t.Error("not exactly the immutable object was recreated")
	}
	if newest := w.newest(); newest.Status != api.StatusDeployed || newest.Inventory.Digest == "" {
		t.Errorf("the record: %+v", newest)
	}

	// Force also applies to a rollback.
	warnings = nil
	r := w.forced(c, "", nil, &warnings)
	r.Marks = backTo(1, 2)
	w.must(w.helm.Rollback(t.Context(), r, 1))
	equal(t, "the objects after a rollback", []string{"a=1", "b=1"}, w.configMaps())
	if len(warnings) != 1 || w.uid("b") != b {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestForce_KeepsObjectIfNewOneIsInvalid(t *testing.T) {
	w := newWorld(t)
	c := freezingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", frozen(valuesOf("a=1")))))
	a := w.uid("a")
	invalid := frozen(valuesOf("a=2"))
	invalid["invalid"] = true
	var warnings []string
	if err := w.helm.Upgrade(t.Context(), w.forced(c, "two", invalid, &warnings)); !errors.Is(err, ErrRefused) {
		t.Errorf("%v, want ErrRefused", err)
	}
	if w.uid("a") != a || len(warnings) > 0 {
		t.Errorf("it was recreated: %q", warnings)
	}
	equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())

	w.setForeignOwner("a")
	w.watch()
	if err := w.helm.Upgrade(t.Context(), w.forced(c, "two", frozen(valuesOf("a=2")), &warnings)); err == nil {
		t.Error("the foreign object was changed")
	}
	if w.uid("a") != a {
		t.Error("the foreign object was recreated")
	}
}

func TestForce_NeverDeletesKindsWithData(t *testing.T) {
	for name, test := range map[string]struct {
		object        string
		before, after string
		path          string
		remade        bool
	}{
		"a Job": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: it}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: %s}]}}}",
			"one", "two", "/apis/batch/v1/namespaces/%s/jobs/it", true,
		},
		"a Service": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: it}\nspec: {clusterIP: %s, ports: [{port: 80}]}",
			"None", "10.0.0.9", "/api/v1/namespaces/%s/services/it", true,
		},
		"a PersistentVolumeClaim": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: it}\nspec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			"one", "two", "/api/v1/namespaces/%s/persistentvolumeclaims/it", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			load := func(value string) *chart.Chart {
				return small().with("templates/it.yaml", fmt.Sprintf(test.object, value)).load(t)
			}
			uid := func() types.UID {
				var live metav1.PartialObjectMetadata
				path := fmt.Sprintf(test.path, w.namespace)
				if err := w.plain.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Into(&live); err != nil {
					raw, err := w.plain.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					_, rest, _ := strings.Cut(string(raw), `"uid":"`)
					live.UID = types.UID(rest[:36])
				}
				return live.UID
			}
			w.must(w.helm.Install(t.Context(), w.request(load(test.before), "one", nil)))
			before := uid()
			if err := w.helm.Upgrade(t.Context(), w.request(load(test.after), "two", nil)); !errors.Is(err, ErrRefused) {
				t.Errorf("without force: %v, want ErrRefused", err)
			}
			var warnings []string
			err := w.helm.Upgrade(t.Context(), w.forced(load(test.after), "two", nil, &warnings))
			if test.remade {
				if err != nil || uid() == before || len(warnings) != 1 {
					t.Errorf("with force: %v, warnings %q", err, warnings)
				}
				equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
				return
			}
			if !errors.Is(err, ErrRefused) || uid() != before || len(warnings) > 0 {
				t.Errorf("with force: %v, warnings %q, recreated: %v", err, warnings, uid() != before)
			}
			equal(t, "the revisions", []string{"v1 deployed"}, w.statuses())
		})
	}
}

// Objects without an owner and objects of other releases can be taken over. Objects of
// another existing custom resource cannot.
func TestTakeOwnership(t *testing.T) {
	c := mapsChart().load(t)
	ofRelease := func(w *world) {
		patch := []byte(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "old", "meta.helm.sh/release-namespace": "` + w.namespace + `"}}}`)
		if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		whose func(*world)
		taken bool
	}{
		{"nobody's", func(*world) {}, true},
		{"another release's", ofRelease, true},
		{"object of another custom resource", func(w *world) { w.setForeignOwner("a") }, false},
		{"object of another custom resource's release", func(w *world) { ofRelease(w); w.setForeignOwner("a") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for verb, act := range map[string]func(*world, Request) error{
				"install": func(w *world, r Request) error { return w.helm.Install(t.Context(), r) },
				"upgrade": func(w *world, r Request) error { return w.helm.Upgrade(t.Context(), r) },
			} {
				w := newWorld(t)
				statuses := []string{}
				if verb == "upgrade" {
					w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("b=1"))))
					statuses = w.statuses()
				}
				made := w.make("a")
				test.whose(w)
				r := w.request(c, "two", valuesOf("a=2", "b=1"))
				r.Allow.TakeOwnership = watches.TakeOwnershipOnRequest
				err := act(w, r)
				if !errors.Is(err, ErrConflict) || strings.Contains(err.Error(), api.AnnotationTakeOwnership) != test.taken {
					t.Errorf("%s without takeOwnership: %v, want ErrConflict that names the annotation if it is allowed", verb, err)
				}
				equal(t, verb+" without takeOwnership: the revisions", statuses, w.statuses())

				r = w.request(c, "two", valuesOf("a=2", "b=1"))
				r.TakeOwnership = true
				err = act(w, r)
				live, getErr := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
				if getErr != nil || live.UID != made.UID {
					t.Fatalf("%s: it was recreated: %v", verb, getErr)
				}
				if !test.taken {
					if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "Small.app.example.com/elsewhere/web") {
						t.Errorf("%s: %v, want ErrConflict with the owner", verb, err)
					}
					if live.Data["value"] != "" || live.Labels[api.LabelOwnerUID] != "another" {
						t.Errorf("%s: it is %v, %v", verb, live.Labels, live.Data)
					}
					equal(t, verb+": the revisions", statuses, w.statuses())
					continue
				}
				if err != nil || live.Data["value"] != "2" || live.Labels[api.LabelOwnerUID] != string(w.owner.UID) || live.Annotations["meta.helm.sh/release-name"] != "web" {
					t.Errorf("%s: %v, it is %v, %v", verb, err, live.Labels, live.Data)
				}
			}
		})
	}
}

// The message names the annotation only if the kind allows it.
func TestConflict_OmitsForbiddenAnnotation(t *testing.T) {
	w := newWorld(t)
	w.make("a")
	err := w.helm.Install(t.Context(), w.request(mapsChart().load(t), "one", valuesOf("a=1")))
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "rename") || strings.Contains(err.Error(), api.AnnotationTakeOwnership) {
		t.Errorf("%v, want ErrConflict that asks to rename one", err)
	}
}
