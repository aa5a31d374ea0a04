package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/testenv"
)

// figMapper maps the kind Fig of a group like the operator's mapper: it knows the versions
// that it has read, until it reads them again.
type figMapper struct {
	meta.RESTMapper
	group string

	mu sync.Mutex
	// known and served are versions.
	known, served []string
}

func (m *figMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Group != m.group {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(versions) > 0 && !slices.Contains(m.known, versions[0]) || len(m.known) == 0 {
		m.known = m.served
	}
	for _, version := range m.known {
		if len(versions) == 0 || versions[0] == "" || versions[0] == version {
			gv := schema.GroupVersion{Group: m.group, Version: version}
			return &meta.RESTMapping{Resource: gv.WithResource("figs"), GroupVersionKind: gv.WithKind("Fig"), Scope: meta.RESTScopeNamespace}, nil
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// orchard is a world with a kind whose version v1beta1 ends.
type orchard struct {
	*world
	mapper *figMapper
	figs   dynamic.ResourceInterface
	crds   dynamic.ResourceInterface
}

const figVersions = `[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}},
	{name: v1beta1, served: SERVED, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, old: {type: string}}}}}}}]`

// figCRD returns the CRD of the kind.
func (w *world) figCRD(served bool) *unstructured.Unstructured {
	w.Helper()
	group := w.namespace + ".example.com"
	text := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: figs." + group + "}, spec: {group: " + group +
		", scope: Namespaced, names: {plural: figs, kind: Fig}, versions: " + strings.ReplaceAll(figVersions, "SERVED", strconv.FormatBool(served)) + "}}"
	return parseObject(w.T, text)
}

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func newOrchard(t *testing.T) *orchard {
	t.Helper()
	w := newWorld(t)
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	group := w.namespace + ".example.com"
	o := &orchard{
		world:  w,
		mapper: &figMapper{RESTMapper: apiServer.mapper, group: group, served: []string{"v1", "v1beta1"}},
		figs:   client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "figs"}).Namespace(w.namespace),
		crds:   client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}),
	}
	if _, err := o.crds.Create(t.Context(), w.figCRD(true), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.awaitVersion(true)
	w.helm.config.Mapper = o.mapper
	return o
}

// awaitVersion waits until the API server serves v1, and v1beta1 or not.
func (o *orchard) awaitVersion(served bool) {
	o.Helper()
	want := map[string]int{"v1": http.StatusOK, "v1beta1": http.StatusNotFound}
	if served {
		want["v1beta1"] = http.StatusOK
	}
	testenv.Until(o, "the versions", func() error {
		for version, code := range want {
			path := "/apis/" + o.mapper.group + "/" + version + "/namespaces/" + o.namespace + "/figs"
			var got int
			_ = o.plain.Discovery().RESTClient().Get().AbsPath(path).Do(o.Context()).StatusCode(&got)
			if got != code {
				return fmt.Errorf("%s: %d, want %d", path, got, code)
			}
		}
		return nil
	})
}

// endVersion ends v1beta1. A cold mapper has read the versions after that.
func (o *orchard) endVersion(warm bool) {
	o.Helper()
	crd := o.figCRD(false)
	live, err := o.crds.Get(o.Context(), crd.GetName(), metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	crd.SetResourceVersion(live.GetResourceVersion())
	if _, err := o.crds.Update(o.Context(), crd, metav1.UpdateOptions{}); err != nil {
		o.Fatal(err)
	}
	o.awaitVersion(false)
	o.mapper.served = []string{"v1"}
	o.mapper.known = []string{"v1beta1"}
	if !warm {
		o.mapper.known = nil
	}
}

// must ends the test if an action failed. The watch of a world reads ConfigMaps only.
func (o *orchard) must(err error) {
	o.Helper()
	o.world.must(err)
	if live, err := o.figs.Get(o.Context(), "a", metav1.GetOptions{}); err == nil {
		o.objects.Put(apply.StateOf(o.key().GroupKind(), live))
	}
}

func (o *orchard) fig() *unstructured.Unstructured {
	o.Helper()
	live, err := o.figs.Get(o.Context(), "a", metav1.GetOptions{})
	if err != nil {
		o.Fatal(err)
	}
	return live
}

// figChart renders a Fig in the version of the values.
func (o *orchard) figChart() files {
	return small().with("values.yaml", "version: v1beta1\nsize: 3\nold: ''\nfig: true\n").with("templates/config.yaml", "{{ if .Values.fig }}\napiVersion: "+o.mapper.group+
		"/{{ .Values.version }}\nkind: Fig\nmetadata: {name: a}\nspec:\n  size: {{ .Values.size }}\n  {{ with .Values.old }}old: {{ . }}{{ end }}\n{{ end }}")
}

func (o *orchard) key() apply.Key {
	return apply.Key{Group: o.mapper.group, Kind: "Fig", Namespace: o.namespace, Name: "a"}
}

// twice repeats an action once. With a warm mapper, the first attempt of an action that
// applies the content of a record may fail: it finds out that the version is not served.
func (o *orchard) twice(action func(context.Context) error) {
	o.Helper()
	err := action(o.Context())
	if meta.IsNoMatchError(err) {
		err = action(o.Context())
	}
	if err != nil {
		o.Errorf("the action fails: %v", err)
	}
}

// TestActions_FindServedVersion: the version of an object in the records is no longer served.
func TestActions_FindServedVersion(t *testing.T) {
	type act func(*orchard, Request)
	install := func(o *orchard, values map[string]any) Request {
		r := o.request(o.figChart().load(o.T), "one", values)
		o.must(o.helm.Install(o.Context(), r))
		return r
	}
	changed := func(o *orchard, values map[string]any) Request {
		return o.request(o.figChart().load(o.T), "two", values)
	}
	grow := func(o *orchard) {
		if _, err := o.figs.Patch(o.Context(), "a", "application/merge-patch+json", []byte(`{"spec": {"size": 9}}`), metav1.PatchOptions{}); err != nil {
			o.Fatal(err)
		}
	}
	size := func(o *orchard, want int64) {
		if got, _, _ := unstructured.NestedInt64(o.fig().Object, "spec", "size"); got != want {
			o.Errorf("the size is %d, want %d", got, want)
		}
	}
	gone := func(o *orchard) {
		if live, err := o.figs.Get(o.Context(), "a", metav1.GetOptions{}); err == nil {
			o.Errorf("the object exists: %v", live.Object)
		}
	}
	for _, test := range []struct {
		name string
		// before acts while v1beta1 is served.
		before, act act
	}{
		{"orphan", nil, func(o *orchard, r Request) {
			o.must(o.helm.Orphan(o.Context(), r))
			if owners := o.fig().GetOwnerReferences(); len(owners) > 0 {
				o.Errorf("the object has the owners %v", owners)
			}
		}},
		{"uninstall", nil, func(o *orchard, r Request) {
			o.must(o.helm.Uninstall(o.Context(), r))
			gone(o)
		}},
		{"prune", nil, func(o *orchard, _ Request) {
			o.must(o.helm.Upgrade(o.Context(), changed(o, map[string]any{"fig": false})))
			gone(o)
		}},
		{"upgrade to the served version", nil, func(o *orchard, _ Request) {
			uid := o.fig().GetUID()
			o.must(o.helm.Upgrade(o.Context(), changed(o, map[string]any{"version": "v1", "size": 4})))
			size(o, 4)
			equal(o.T, "the UID", uid, o.fig().GetUID())
		}},
		{"repair", func(o *orchard, _ Request) { grow(o) }, func(o *orchard, r Request) {
			o.twice(func(ctx context.Context) error {
				_, err := o.helm.Repair(ctx, r, map[apply.Key]bool{o.key(): true})
				return err
			})
			size(o, 3)
		}},
		{"verify", func(o *orchard, _ Request) { grow(o) }, func(o *orchard, r Request) {
			o.twice(func(ctx context.Context) error { return o.helm.Verify(ctx, r) })
			size(o, 3)
		}},
		{"rollback", func(o *orchard, _ Request) {
			o.must(o.helm.Upgrade(o.Context(), changed(o, map[string]any{"version": "v1", "size": 4})))
		}, func(o *orchard, r Request) {
			var warned []string
			r.Notifier = warnFunc(func(reason, message string) { warned = append(warned, reason+" "+message) })
			o.twice(func(ctx context.Context) error { return o.helm.Rollback(ctx, r, 1) })
			size(o, 3)
			if !slices.ContainsFunc(warned, func(w string) bool {
				return strings.HasPrefix(w, api.EventObjectAdjusted) && strings.Contains(w, o.mapper.group+"/v1,")
			}) {
				o.Errorf("no event names the served version: %q", warned)
			}
		}},
		{"sign", func(o *orchard, _ Request) {
			o.patchRecord("v1", `{"metadata": {"labels": {"`+api.LabelSignature+`": null}}}`)
		}, func(o *orchard, r Request) {
			o.must(o.helm.Sign(o.Context(), r))
		}},
	} {
		for _, warm := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, warm=%v", test.name, warm), func(t *testing.T) {
				t.Parallel()
				o := newOrchard(t)
				r := install(o, nil)
				if test.before != nil {
					test.before(o, r)
				}
				o.endVersion(warm)
				test.act(o, r)
			})
		}
	}
}

// TestRollback_KeepsFieldsOfOldVersion: a field that only the old version has is not dropped
// silently.
func TestRollback_KeepsFieldsOfOldVersion(t *testing.T) {
	o := newOrchard(t)
	o.must(o.helm.Install(t.Context(), o.request(o.figChart().load(t), "one", map[string]any{"old": "x"})))
	r := o.request(o.figChart().load(t), "two", map[string]any{"version": "v1", "size": 4})
	o.must(o.helm.Upgrade(t.Context(), r))
	o.endVersion(false)
	if err := o.helm.Rollback(t.Context(), r, 1); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), ".spec.old") {
		t.Errorf("the error is %v, want one that names the field", err)
	}
	equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, o.statuses())
}

// TestUpgrade_RejectsUnservedVersion: a rendered object is not applied in another version than
// the chart names, although the record of the previous revision contains the same text.
func TestUpgrade_RejectsUnservedVersion(t *testing.T) {
	for _, warm := range []bool{true, false} {
		o := newOrchard(t)
		o.must(o.helm.Install(t.Context(), o.request(o.figChart().load(t), "one", nil)))
		o.endVersion(warm)
		for _, size := range []int{3, 4} {
			err := o.helm.Upgrade(t.Context(), o.request(o.figChart().load(t), "two", map[string]any{"size": size}))
			// With the same content, a warm operator applies nothing.
			if !meta.IsNoMatchError(err) && (!warm || size != 3) {
				t.Errorf("warm=%v, size %d: the error is %v, want one that names the version", warm, size, err)
			}
		}
	}
}

// TestUpgrade_WithoutKindOfPreviousRevision: the CRD of an object in the previous revision was
// deleted.
func TestUpgrade_WithoutKindOfPreviousRevision(t *testing.T) {
	o := newOrchard(t)
	o.must(o.helm.Install(t.Context(), o.request(o.figChart().load(t), "one", nil)))
	if err := o.crds.Delete(t.Context(), "figs."+o.mapper.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.mapper.known, o.mapper.served = nil, nil
	o.must(o.helm.Upgrade(t.Context(), o.request(o.figChart().load(t), "two", map[string]any{"fig": false})))
	equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, o.statuses())
}

// TestAdopt_ReleaseInUnservedVersion: the helm CLI stored the release while the version was
// served.
func TestAdopt_ReleaseInUnservedVersion(t *testing.T) {
	o := newOrchard(t)
	manifest := "apiVersion: " + o.mapper.group + "/v1beta1\nkind: Fig\nmetadata: {name: a}\nspec: {size: 3}\n"
	fig := parseObject(t, manifest)
	fig.SetAPIVersion(o.mapper.group + "/v1")
	marks := o.ofHelm("a")
	fig.SetLabels(marks.Labels)
	fig.SetAnnotations(marks.Annotations)
	if _, err := o.figs.Create(t.Context(), fig, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	stored := aRelease()
	stored.Namespace, stored.Version, stored.Labels, stored.Hooks = o.namespace, 1, nil, nil
	stored.Info.Status, stored.Manifest = engine.StatusDeployed, manifest
	stored.Config = map[string]any{"size": int64(3)}
	if err := engine.NewSecretsDriver(o.plain.CoreV1().Secrets(o.namespace)).Create("sh.helm.release.v1.web.v1", stored); err != nil {
		t.Fatal(err)
	}
	o.endVersion(false)
	o.watch()
	r := o.request(o.figChart().load(t), "one", map[string]any{"size": int64(3)})
	o.must(o.helm.Adopt(t.Context(), r))
	if newest := o.index.History(o.namespace, "web")[0]; newest.Revision != 1 || newest.OwnerUID != o.owner.UID {
		t.Errorf("the record: %+v", newest)
	}
	if !apply.Owns(o.fig(), o.owner) {
		t.Errorf("the object was not adopted: %v", o.fig().GetLabels())
	}
}
