package plugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
)

func rendered(t *testing.T, texts ...string) []chart.RenderedObject {
	t.Helper()
	var objects []chart.RenderedObject
	for _, text := range texts {
		objects = append(objects, chart.RenderedObject{Unstructured: decoded(t, text)})
	}
	return objects
}

func TestCompare(t *testing.T) {
	const (
		one     = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: x, a: v}\n"
		reorder = "kind: ConfigMap\ndata: {a: v, b: x}\nmetadata: {name: a}\napiVersion: v1\n"
		other   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: x, a: z}\n"
		job     = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n"
	)
	in := func(namespace, text string) string {
		return strings.Replace(text, "{name: a}", "{name: a, namespace: "+namespace+"}", 1)
	}
	for name, test := range map[string]struct {
		before, after, hooksBefore, hooksAfter []string
		// want are the changes.
		want []string
		// says is part of the diffs.
		says []string
	}{
		"nothing":                 {before: []string{one, job}, after: []string{job, reorder}},
		"changed":                 {before: []string{one}, after: []string{other}, want: []string{"Changed ConfigMap a"}, says: []string{"--- ConfigMap a, before\n+++ ConfigMap a, after\n", "-  a: v\n+  a: z\n"}},
		"in order":                {after: []string{job, one}, want: []string{"Added ConfigMap a", "Added Job.batch a"}, says: []string{"--- /dev/null\n+++ Job.batch a, after\n"}},
		"removed":                 {before: []string{job}, want: []string{"Removed Job.batch a"}, says: []string{"--- Job.batch a, before\n+++ /dev/null\n"}},
		"the usual namespace":     {before: []string{one}, after: []string{in("shop", one)}, want: []string{"Changed ConfigMap a"}, says: []string{"+  namespace: shop\n"}},
		"another namespace":       {before: []string{one}, after: []string{in("other", one)}, want: []string{"Removed ConfigMap a", "Added ConfigMap other/a"}},
		"another version":         {before: []string{job}, after: []string{strings.Replace(job, "/v1", "/v2", 1)}, want: []string{"Changed Job.batch a"}, says: []string{"-apiVersion: batch/v1\n+apiVersion: batch/v2\n"}},
		"a hook":                  {hooksBefore: []string{job}, hooksAfter: []string{strings.Replace(job, "/v1", "/v2", 1)}, want: []string{"Changed Job.batch a (hook)"}},
		"becomes a hook":          {before: []string{job}, hooksAfter: []string{job}, want: []string{"Removed Job.batch a", "Added Job.batch a (hook)"}},
		"one that is there twice": {before: []string{one, one}, after: []string{one}, want: []string{"Removed ConfigMap a"}},
	} {
		t.Run(name, func(t *testing.T) {
			diffs, err := compare(
				manifest{title: "before", namespace: "shop", objects: rendered(t, test.before...), hooks: rendered(t, test.hooksBefore...)},
				manifest{title: "after", namespace: "shop", objects: rendered(t, test.after...), hooks: rendered(t, test.hooksAfter...)},
			)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var texts strings.Builder
			for _, d := range diffs {
				got = append(got, string(d.Change)+" "+d.String())
				texts.WriteString(d.Diff)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			for _, want := range test.says {
				if !strings.Contains(texts.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, texts.String())
				}
			}
		})
	}
}

func TestPaintDiff(t *testing.T) {
	const text = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-was\n+is\n"
	if got := (painter{}).paintDiff(text); got != text {
		t.Errorf("without colors it is %q", got)
	}
	const want = "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n same\n\x1b[31m-was\x1b[0m\n\x1b[32m+is\x1b[0m\n"
	if got := (painter{on: true}).paintDiff(text); got != want {
		t.Errorf("with colors it is %q", got)
	}
}

func TestChooseRevisions(t *testing.T) {
	history := func(statuses ...string) (entries []api.HistoryEntry) {
		for i, status := range statuses {
			entries = append(entries, api.HistoryEntry{Revision: int64(len(statuses) - i), Status: status})
		}
		return entries
	}
	const yes, was, no = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
	for _, test := range []struct {
		name     string
		history  []api.HistoryEntry
		asked    string
		from, to int64
		says     string
	}{
		{"the last two", history(yes, was, was), "", 2, 3, ""},
		{"failed ones left out", history(no, yes, no, was), "", 1, 3, ""},
		{"only one", history(no, yes), "", 0, 0, "there are 1, 2, for --revision"},
		{"both", history(yes, was, was), "1..2", 1, 2, ""},
		{"backwards", history(yes, was, was), "3 .. 1", 3, 1, ""},
		{"one", history(no, yes, was), "1", 1, 3, ""},
		{"no number", history(yes, was), "a..2", 0, 0, `"a" is no revision`},
		{"no end", history(yes, was), "1..", 0, 0, `"" is no revision`},
		{"too much", history(yes, was), "1..2..3", 0, 0, `"2..3" is no revision`},
		{"nothing", history(yes, was), "0", 0, 0, `"0" is no revision`},
		{"too far", history(yes, was), "4294967297", 0, 0, "is no revision"},
	} {
		from, to, err := chooseRevisions(test.history, test.asked)
		if from != test.from || to != test.to || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %d, %d, %v", test.name, from, to, err)
		}
	}
}

func TestReadSpec(t *testing.T) {
	kind := schema.GroupKind{Group: "app.example.com", Kind: "PodSet"}
	const head = "apiVersion: app.example.com/v1\nkind: PodSet\n"
	for _, test := range []struct {
		name, text string
		want       map[string]any
		says       string
	}{
		{"a spec", "replicas: 3\n", map[string]any{"replicas": int64(3)}, ""},
		{"as json", `{"replicas": 3.0}`, map[string]any{"replicas": int64(3)}, ""},
		{"a custom resource", head + "metadata: {name: web}\nspec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"the spec alone of a custom resource", "spec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"without a name", head + "spec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"of a version before", "apiVersion: app.example.com/v1alpha1\nkind: PodSet\n", map[string]any{}, ""},
		{"a file that begins and ends so", "---\nreplicas: 3\n---\n", map[string]any{"replicas": int64(3)}, ""},
		{"nothing", "# nothing\n", map[string]any{}, ""},
		{"another kind", "apiVersion: v1\nkind: Pod\n", nil, "it holds a Pod: expected a PodSet.app.example.com"},
		{"another one", head + "metadata: {name: api}\n", nil, "it holds PodSet api: expected web"},
		{"two", "a: b\n---\nc: d\n", nil, "several documents"},
		{"a list", "- a\n", nil, "expected a custom resource, or its spec"},
		{"a key twice", "a: b\na: c\n", nil, `"a" already set`},
		{"a spec that is none", head + "spec: 3\n", nil, "expected an object"},
	} {
		got, err := readSpec([]byte(test.text), kind, "web")
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestBeside(t *testing.T) {
	type m = map[string]any
	for _, test := range []struct {
		name         string
		stored, spec m
		// same and other are what is kept of this very spec, and of another.
		same, other m
	}{
		{"nothing", m{"a": "b", "c": m{"d": int64(1)}}, m{"a": "b", "c": m{"d": int64(1)}}, m{}, m{}},
		{"what the spec has not", m{"a": "b", "c": m{"d": "e", "f": "g"}}, m{"c": m{"d": "e"}}, m{"a": "b", "c": m{"f": "g"}}, m{"a": "b", "c": m{"f": "g"}}},
		{"what was laid over it", m{"a": "over", "c": m{"d": "over"}}, m{"a": "b", "c": m{"d": "e"}}, m{"a": "over", "c": m{"d": "over"}}, m{}},
		{"a list", m{"a": []any{"x"}}, m{"a": []any{"y"}}, m{"a": []any{"x"}}, m{}},
		{"of another type", m{"a": m{"b": "c"}}, m{"a": "b"}, m{"a": m{"b": "c"}}, m{}},
		{"null", m{"a": nil}, m{"a": nil}, m{}, m{}},
		{"what is only in the spec", m{}, m{"a": "b"}, m{}, m{}},
	} {
		if diff := cmp.Diff(test.same, beside(test.stored, test.spec, true)); diff != "" {
			t.Errorf("%s, of this spec (-want +got):\n%s", test.name, diff)
		}
		if diff := cmp.Diff(test.other, beside(test.stored, test.spec, false)); diff != "" {
			t.Errorf("%s, of another (-want +got):\n%s", test.name, diff)
		}
		if whole := len(beside(test.spec, test.stored, true)) == 0; whole != (len(test.spec) == 0 || cmp.Equal(test.same, test.other) && test.name != "what is only in the spec") {
			t.Errorf("%s: it holds the spec: %v", test.name, whole)
		}
	}
}

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

const canary = "canary-7f3"

func TestMask(t *testing.T) {
	secret := func(rest string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" + rest }
	for name, test := range map[string]struct {
		before, after         string
		wantBefore, wantAfter string
	}{
		"no Secret": {
			before: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
			wantBefore: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
		},
		"another group's Secret": {
			before: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", after: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
			wantBefore: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", wantAfter: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
		},
		"equal, changed, gone and new": {
			before: secret("data: {same: canary-7f3, other: canary-7f3, gone: canary-7f3}"), after: secret("data: {same: canary-7f3, other: canary-7f3-2, new: canary-7f3}"),
			wantBefore: secret("data: {same: '***', other: '*** (before)', gone: '*** (before)'}"), wantAfter: secret("data: {same: '***', other: '*** (after)', new: '*** (after)'}"),
		},
		"stringData": {
			before: secret("stringData: {a: canary-7f3}"), after: secret("stringData: {a: canary-7f3}"),
			wantBefore: secret("stringData: {a: '***'}"), wantAfter: secret("stringData: {a: '***'}"),
		},
		"made":    {after: secret("data: {a: canary-7f3}"), wantAfter: secret("data: {a: '*** (after)'}")},
		"removed": {before: secret("data: {a: canary-7f3}"), wantBefore: secret("data: {a: '*** (before)'}")},
		"null": {
			before: secret("data:"), after: secret("data: {a: canary-7f3}"),
			wantBefore: secret("data:"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"no map": {
			before: secret("data: canary-7f3"), after: secret("data: {a: [canary-7f3]}"),
			wantBefore: secret("data: '*** (before)'"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"becomes another kind": {
			before: "apiVersion: v1\nkind: Secret\ndata: {a: canary-7f3}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: canary-7f3}",
			wantBefore: "apiVersion: v1\nkind: Secret\ndata: {a: '***'}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: '***'}",
		},
		"as kubectl apply keeps it": {
			before: secret("type: Opaque"), after: "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: canary-7f3, b: c}}",
			wantBefore: secret("type: Opaque"),
			wantAfter:  "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: '*** (after)', b: c}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := decoded(t, test.before), decoded(t, test.after)
			shownBefore, shownAfter := mask(before, after)
			if diff := cmp.Diff(decoded(t, test.wantBefore), shownBefore); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, test.wantAfter), shownAfter); diff != "" {
				t.Errorf("after (-want +got):\n%s", diff)
			}
			if shown := fmt.Sprint(shownBefore, shownAfter); strings.Contains(shown, canary) {
				t.Errorf("it tells the secret: %s", shown)
			}
			if diff := cmp.Diff([]*unstructured.Unstructured{decoded(t, test.before), decoded(t, test.after)}, []*unstructured.Unstructured{before, after}); diff != "" {
				t.Errorf("what was given is changed (-want +got):\n%s", diff)
			}
		})
	}
}
