package plugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func TestCompare_ListsChangedObjects(t *testing.T) {
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
		// want lists the changed objects.
		want []string
		// parts are parts of the diffs.
		parts []string
	}{
		"order of keys":            {before: []string{one, job}, after: []string{job, reorder}},
		"changed":                  {before: []string{one}, after: []string{other}, want: []string{"Changed ConfigMap a"}, parts: []string{"--- ConfigMap a, before\n+++ ConfigMap a, after\n", "-  a: v\n+  a: z\n"}},
		"sorted by kind":           {after: []string{job, one}, want: []string{"Added ConfigMap a", "Added Job.batch a"}, parts: []string{"--- /dev/null\n+++ Job.batch a, after\n"}},
		"removed":                  {before: []string{job}, want: []string{"Removed Job.batch a"}, parts: []string{"--- Job.batch a, before\n+++ /dev/null\n"}},
		"namespace of the release": {before: []string{one}, after: []string{in("shop", one)}, want: []string{"Changed ConfigMap a"}, parts: []string{"+  namespace: shop\n"}},
		"other namespace":          {before: []string{one}, after: []string{in("other", one)}, want: []string{"Removed ConfigMap a", "Added ConfigMap other/a"}},
		"other API version":        {before: []string{job}, after: []string{strings.Replace(job, "/v1", "/v2", 1)}, want: []string{"Changed Job.batch a"}, parts: []string{"-apiVersion: batch/v1\n+apiVersion: batch/v2\n"}},
		"hook":                     {hooksBefore: []string{job}, hooksAfter: []string{strings.Replace(job, "/v1", "/v2", 1)}, want: []string{"Changed Job.batch a (hook)"}},
		"object becomes a hook":    {before: []string{job}, hooksAfter: []string{job}, want: []string{"Removed Job.batch a", "Added Job.batch a (hook)"}},
		"object contained twice":   {before: []string{one, one}, after: []string{one}, want: []string{"Removed ConfigMap a"}},
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
			for _, want := range test.parts {
				if !strings.Contains(texts.String(), want) {
					t.Errorf("%q is missing in\n%s", want, texts.String())
				}
			}
		})
	}
}

func TestPaintDiff_ColorsLines(t *testing.T) {
	const text = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-was\n+is\n"
	if got := (painter{}).paintDiff(text); got != text {
		t.Errorf("without colors: %q", got)
	}
	const want = "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n same\n\x1b[31m-was\x1b[0m\n\x1b[32m+is\x1b[0m\n"
	if got, _ := escaped([]byte(painter{on: true}.paintDiff(text))); string(got) != want {
		t.Errorf("with colors: %q", got)
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
		flag     string
		from, to int64
		err      string
	}{
		{"newest two", history(yes, was, was), "", 2, 3, ""},
		{"failed revisions are skipped", history(no, yes, no, was), "", 1, 3, ""},
		{"only one deployed", history(no, yes), "", 0, 0, "select two of 1, 2 by --revision"},
		{"two numbers", history(yes, was, was), "1..2", 1, 2, ""},
		{"descending", history(yes, was, was), "3 .. 1", 3, 1, ""},
		{"one number", history(no, yes, was), "1", 1, 3, ""},
		{"not a number", history(yes, was), "a..2", 0, 0, `invalid revision "a"`},
		{"second number missing", history(yes, was), "1..", 0, 0, `invalid revision ""`},
		{"three numbers", history(yes, was), "1..2..3", 0, 0, `invalid revision "2..3"`},
		{"zero", history(yes, was), "0", 0, 0, `invalid revision "0"`},
		{"overflow", history(yes, was), "4294967297", 0, 0, "invalid revision"},
	} {
		from, to, err := chooseRevisions(test.history, test.flag)
		if from != test.from || to != test.to || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d, %d, %v", test.name, from, to, err)
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

func TestMask_HidesValuesOfSecrets(t *testing.T) {
	secret := func(rest string) string { return "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" + rest }
	for name, test := range map[string]struct {
		before, after         string
		wantBefore, wantAfter string
	}{
		"no Secret": {
			before: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
			wantBefore: "apiVersion: v1\nkind: ConfigMap\ndata: {a: plain}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: other}",
		},
		"Secret of another API group": {
			before: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", after: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
			wantBefore: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}", wantAfter: "apiVersion: example.com/v1\nkind: Secret\ndata: {a: plain}",
		},
		"equal, changed, removed and added keys": {
			before: secret("data: {same: canary-7f3, other: canary-7f3, gone: canary-7f3}"), after: secret("data: {same: canary-7f3, other: canary-7f3-2, new: canary-7f3}"),
			wantBefore: secret("data: {same: '***', other: '*** (before)', gone: '*** (before)'}"), wantAfter: secret("data: {same: '***', other: '*** (after)', new: '*** (after)'}"),
		},
		"stringData": {
			before: secret("stringData: {a: canary-7f3}"), after: secret("stringData: {a: canary-7f3}"),
			wantBefore: secret("stringData: {a: '***'}"), wantAfter: secret("stringData: {a: '***'}"),
		},
		"added":   {after: secret("data: {a: canary-7f3}"), wantAfter: secret("data: {a: '*** (after)'}")},
		"removed": {before: secret("data: {a: canary-7f3}"), wantBefore: secret("data: {a: '*** (before)'}")},
		"null": {
			before: secret("data:"), after: secret("data: {a: canary-7f3}"),
			wantBefore: secret("data:"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"not a map": {
			before: secret("data: canary-7f3"), after: secret("data: {a: [canary-7f3]}"),
			wantBefore: secret("data: '*** (before)'"), wantAfter: secret("data: {a: '*** (after)'}"),
		},
		"becomes another kind": {
			before: "apiVersion: v1\nkind: Secret\ndata: {a: canary-7f3}", after: "apiVersion: v1\nkind: ConfigMap\ndata: {a: canary-7f3}",
			wantBefore: "apiVersion: v1\nkind: Secret\ndata: {a: '***'}", wantAfter: "apiVersion: v1\nkind: ConfigMap\ndata: {a: '***'}",
		},
		"last-applied annotation": {
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
				t.Errorf("output contains the secret: %s", shown)
			}
			if diff := cmp.Diff([]*unstructured.Unstructured{decoded(t, test.before), decoded(t, test.after)}, []*unstructured.Unstructured{before, after}); diff != "" {
				t.Errorf("input was modified (-want +got):\n%s", diff)
			}
		})
	}
}
