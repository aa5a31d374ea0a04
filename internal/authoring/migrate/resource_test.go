package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/release"
)

// project reads the project with hazards. Its first kind is Store.
func project(t *testing.T) *Project {
	t.Helper()
	p, err := Read("testdata/hazards", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func store(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Store",
		"metadata": map[string]any{"name": "a", "namespace": "shops", "labels": map[string]any{"tier": "gold"}},
		"spec":     spec,
	}}
}

func TestSpec_ReportsDroppedAndRejectedFields(t *testing.T) {
	rules, err := newRules(project(t).kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	const command = "kubectl patch -n shops stores.shop.example.com a --type=json -p "
	for name, test := range map[string]struct {
		spec map[string]any
		// want alternates between What and Lines of the expected findings.
		want []string
	}{
		"good": {map[string]any{"replicas": int64(1), "image": "it's"}, nil},
		"null": {map[string]any{"replicas": nil}, nil},
		// The API server removes such nulls before validation.
		"null for a string": {map[string]any{"pace": nil}, nil},
		"an unknown field":  {map[string]any{"color": "red"}, []string{"spec.color: the CRD does not have this field", command + `'[{"op":"remove","path":"/spec/color"}]'`}},
		"a string for a number": {map[string]any{"replicas": "3"}, []string{
			"spec.replicas: the CRD rejects the value", command + `'[{"op":"replace","path":"/spec/replicas","value":3}]'`,
		}},
		"a string for a boolean": {map[string]any{"metrics": "false"}, []string{
			"spec.metrics: the CRD rejects the value", command + `'[{"op":"replace","path":"/spec/metrics","value":false}]'`,
		}},
		"a number for a string": {map[string]any{"image": int64(3)}, []string{
			"spec.image: the CRD rejects the value", command + `'[{"op":"replace","path":"/spec/image","value":"3"}]'`,
		}},
		// The intended value is not known.
		"a word for a number": {map[string]any{"replicas": "three"}, []string{"spec.replicas: the CRD rejects the value", ""}},
		"a number too small":  {map[string]any{"replicas": int64(0)}, []string{"spec.replicas: the CRD rejects the value", ""}},
	} {
		found := rules.spec(store(test.spec))
		if len(found) != len(test.want)/2 {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		for i, f := range found {
			what, lines := test.want[2*i], test.want[2*i+1]
			if f.Verdict != Breaks || !strings.HasPrefix(f.What, what) || strings.TrimSpace(f.Lines) != lines || !slices.Equal(f.Resources, []string{"shops/a"}) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func TestMetadata_OfOperatorSDKResources(t *testing.T) {
	rules, err := newRules(project(t).kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	deleted := metav1.NewTime(time.Unix(1, 0))
	annotated := func(key, value string) func(*unstructured.Unstructured) {
		return func(cr *unstructured.Unstructured) { cr.SetAnnotations(map[string]string{key: value}) }
	}
	for name, test := range map[string]struct {
		change  func(*unstructured.Unstructured)
		verdict Verdict
		what    string
	}{
		"nothing":            {func(*unstructured.Unstructured) {}, "", ""},
		"without its labels": {func(cr *unstructured.Unstructured) { cr.SetLabels(nil) }, Breaks, "the labels do not match the selector tier=gold"},
		"being deleted":      {func(cr *unstructured.Unstructured) { cr.SetDeletionTimestamp(&deleted) }, ToDo, "the custom resource is being deleted"},
		"finalizer": {func(cr *unstructured.Unstructured) {
			cr.SetFinalizers([]string{"helm.sdk.operatorframework.io/uninstall-release"})
		}, Works, "the finalizer helm.sdk.operatorframework.io/uninstall-release is replaced by chartwright.dev/uninstall"},
		"finalizer, legacy":            {func(cr *unstructured.Unstructured) { cr.SetFinalizers([]string{"uninstall-helm-release"}) }, Works, "the finalizer uninstall-helm-release is replaced"},
		"finalizer, foreign":           {func(cr *unstructured.Unstructured) { cr.SetFinalizers([]string{"example.com/stay"}) }, "", ""},
		"annotation":                   {annotated("helm.sdk.operatorframework.io/uninstall-wait", "true"), Works, "the annotation helm.sdk.operatorframework.io/uninstall-wait"},
		"annotation, unknown":          {annotated("helm.sdk.operatorframework.io/what", "x"), Changes, "the annotation helm.sdk.operatorframework.io/what has no effect"},
		"annotation, invalid boolean":  {annotated("helm.sdk.operatorframework.io/upgrade-force", "yes"), Changes, `has the invalid value "yes"`},
		"annotation, invalid duration": {annotated("helm.sdk.operatorframework.io/reconcile-period", "1"), Changes, `has the invalid value "1"`},
		"annotation, a string":         {annotated("helm.sdk.operatorframework.io/install-description", "why"), Works, "install-description"},
		"failing": {func(cr *unstructured.Unstructured) {
			cr.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Irreconcilable", "status": "True", "message": "no such thing"}}}
		}, ToDo, "the custom resource is failing (condition Irreconcilable): no such thing"},
		"recovered": {func(cr *unstructured.Unstructured) {
			cr.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "ReleaseFailed", "status": "False"}}}
		}, "", ""},
	} {
		cr := store(nil)
		test.change(cr)
		check := checkOf(&kindCheck{rules: rules}, cr)
		check.metadata()
		found := check.findings
		switch {
		case test.verdict == "" && len(found) == 0:
		case len(found) != 1 || found[0].Verdict != test.verdict || !strings.Contains(found[0].What, test.what) || len(found[0].Resources) != 1:
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// checkOf returns a check of a custom resource without findings.
func checkOf(k *kindCheck, cr *unstructured.Unstructured) *resourceCheck {
	return &resourceCheck{kindCheck: k, cr: cr, finder: finder{resources: []string{resourceName(cr)}}}
}

func TestAdoption_ReportsNewRevision(t *testing.T) {
	// The chart of the kind is store-1.0.0. It overrides image, replicas: 2 and
	// metrics: false.
	kind := project(t).kinds[0]
	given := map[string]any{"image": "", "replicas": int64(2), "metrics": false, "reader": true}
	was := func(change func(*release.Stored)) *release.Stored {
		stored := &release.Stored{
			Record: release.Record{Release: "a", Revision: 3, Status: "deployed", Description: release.Description{Chart: "store", ChartVersion: "1.0.0"}},
			Values: map[string]any{"image": "", "replicas": "2", "metrics": false, "reader": true},
		}
		if change != nil {
			change(stored)
		}
		return stored
	}
	for name, test := range map[string]struct {
		stored    *release.Stored
		inherited bool
		verdict   Verdict
		what      string
	}{
		"unchanged":               {was(nil), true, Works, "without a new revision"},
		"false was a string":      {was(func(s *release.Stored) { s.Values["metrics"] = "false" }), true, Changes, "creates a revision: these values differ: metrics"},
		"values":                  {was(func(s *release.Stored) { s.Values["reader"] = false }), true, Changes, "reader"},
		"another chart version":   {was(func(s *release.Stored) { s.ChartVersion = "0.9.0" }), true, Changes, "the chart version is 1.0.0, and that of the release 0.9.0"},
		"another chart":           {was(func(s *release.Stored) { s.Chart = "shop" }), true, Changes, "the chart is store, and that of the release shop"},
		"another chart, no owner": {was(func(s *release.Stored) { s.Chart = "shop" }), false, Breaks, "its chart is shop and not store"},
		"no owner":                {was(nil), false, Works, "without a new revision"},
		"failed":                  {was(func(s *release.Stored) { s.Status = "failed" }), true, Changes, "the newest revision is failed"},
		"pending":                 {was(func(s *release.Stored) { s.Status = "pending-upgrade" }), true, ToDo, "revision 3 is pending-upgrade"},
		"uninstalling":            {was(func(s *release.Stored) { s.Status = "uninstalling" }), true, ToDo, "being uninstalled"},
		"another release name":    {was(func(s *release.Stored) { s.Release = "a.b" }), true, Works, "without a new revision"},
	} {
		check := checkOf(&kindCheck{kind: kind}, store(nil))
		check.adoption(test.stored, test.inherited, given)
		found := check.findings
		if len(found) != 1 || found[0].Verdict != test.verdict || !strings.Contains(found[0].What, test.what) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestFindHistory_InheritedOrTaken(t *testing.T) {
	index := release.NewIndex(nil)
	secret := func(release string, version int, owner string) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{}
		m.Namespace, m.Name = "shops", fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
		m.Labels = map[string]string{"owner": "helm", "name": release, "version": strconv.Itoa(version), "status": "deployed"}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Controller: new(true)}}
		}
		return m
	}
	// Unordered, and with metadata that is not of a record.
	for _, m := range []*metav1.PartialObjectMetadata{secret("a", 10, "one"), secret("a", 9, "one"), secret("x", 1, "two"), secret("b", 2, ""), {}} {
		if record, ok := release.FromMeta(m); ok {
			index.Put(record)
		}
	}
	for name, test := range map[string]struct {
		name, uid string
		revision  int
		inherited bool
		taken     bool
	}{
		"own release":                        {"a", "one", 10, true, false},
		"own release with another name":      {"c", "two", 1, true, false},
		"no owner":                           {"b", "three", 2, false, false},
		"release of another custom resource": {"a", "three", 10, false, true},
		"no release":                         {"none", "three", 0, false, false},
		"no release, name with a dot":        {"a.b", "three", 0, false, false},
	} {
		cr := store(nil)
		cr.SetName(test.name)
		cr.SetUID(types.UID(test.uid))
		history, inherited, taken := findHistory(index, cr, catalog.ReleaseNames(test.name, "Store")[0])
		revision := 0
		if len(history) > 0 {
			revision = history[0].Revision
		}
		if revision != test.revision || inherited != test.inherited || taken != test.taken {
			t.Errorf("%s: revision %d, inherited %t, taken %t", name, revision, inherited, taken)
		}
	}
}

func TestPointerTo_EscapesKeys(t *testing.T) {
	content := map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a/b~c": int64(7)}}}}
	for path, pointer := range map[string]string{
		"spec.list[0].a/b~c": "/spec/list/0/a~1b~0c", "spec": "/spec", "": "",
	} {
		if got := pointerTo(path); got != pointer {
			t.Errorf("%s is %s, expected %s", path, got, pointer)
		}
	}
	for path, want := range map[string]any{
		"spec.list[0].a/b~c": int64(7), "spec.list[1]": nil, "spec.list.x": nil, "spec.none": nil, "spec.list[0].a/b~c.d": nil,
	} {
		if got, found := fieldAt(content, path); got != want || found != (want != nil) {
			t.Errorf("%s: %v, %t", path, got, found)
		}
	}
}
