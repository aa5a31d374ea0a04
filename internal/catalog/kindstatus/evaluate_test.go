package kindstatus_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

func compile(t *testing.T, expressions map[string]string) kindstatus.Fields {
	t.Helper()
	fields, problems := kindstatus.Compile(expressions, []string{"pods", "claims"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return fields
}

func pod(name string, terminating bool) any {
	metadata := map[string]any{"name": name, "labels": map[string]any{"app": "web"}}
	if terminating {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	return map[string]any{"metadata": metadata, "spec": map[string]any{"containers": []any{map[string]any{"image": "busybox"}}}}
}

func input() kindstatus.Input {
	return kindstatus.Input{
		Release: api.ReleaseStatus{Name: "web", Namespace: "shop", Revision: 3, Status: "deployed", Chart: "podset-0.1.0", ChartVersion: "0.1.0", AppVersion: "1.37"},
		Values: func() map[string]any {
			return map[string]any{
				"replicas": int64(2), "ratio": 0.5, "storage-size": "1Gi", "nothing": nil,
				"ports":  map[string]any{"c": int64(3), "a": int64(1), "b": int64(2), "d": int64(4)},
				"nested": map[string]any{"deep": map[string]any{"list": []any{"x", "y"}}},
			}
		},
		Resources: []kindstatus.Resource{
			{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", Ready: true},
			{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", Reason: "Pending", Message: "no node"},
		},
		Observed: map[string]any{"pods": []any{pod("web-b", false), pod("web-a", false), pod("web-c", true)}, "claims": []any{}},
	}
}

func TestEvaluate(t *testing.T) {
	for expression, want := range map[string]any{
		"release.name + '/' + release.namespace + '@' + string(release.revision)": "web/shop@3",
		"release.status == 'deployed' && release.chart.startsWith('podset-')":     true,
		"[release.chartVersion, release.appVersion]":                              []any{"0.1.0", "1.37"},
		"values['storage-size']":         "1Gi",
		"values.replicas":                int64(2),
		"values.replicas + 1":            int64(3),
		"values.replicas > 1.5":          true,
		"values.ratio":                   0.5,
		"values.ratio * 4.0":             int64(2),
		"values.nested.deep.list[1]":     "y",
		"has(values.absent)":             false,
		"values.?absent.orValue('none')": "none",
		"values.?absent":                 nil,
		"values.nothing":                 nil,
		"values.nested":                  map[string]any{"deep": map[string]any{"list": []any{"x", "y"}}},
		"resources.filter(r, !r.ready).map(r, r.kind + ' ' + r.name + ': ' + r.reason)":                      []any{"PersistentVolumeClaim data: Pending"},
		"resources.exists(r, r.group == 'apps' && r.kind == 'Deployment')":                                   true,
		"observed.pods.filter(p, !has(p.metadata.deletionTimestamp)).map(p, string(p.metadata.name)).sort()": []any{"web-a", "web-b"},
		"size(observed['pods'])":                     int64(3),
		"size(observed.claims)":                      int64(0),
		"observed.claims":                            []any{},
		"observed.pods[0].spec.containers[0].image":  "busybox",
		"values.ports.map(k, k)":                     []any{"a", "b", "c", "d"},
		"{'b': 1, 'c': 2, 'a': 3, 'd': 4}.map(k, k)": []any{"a", "b", "c", "d"},
		"{3: 'x', 1: 'y', 2: 'z'}.map(k, k)":         []any{int64(1), int64(2), int64(3)},
		"{1: 'x', true: null, 'a': [1]}":             map[string]any{"1": "x", "a": []any{int64(1)}},
		"['b', 'a'].sort().join('-')":                "a-b",
		"sets.contains(['a', 'b'], ['a'])":           true,
		"math.greatest(1, 5, 3)":                     int64(5),
		"timestamp('2026-01-02T03:04:05.6+01:00')":   "2026-01-02T02:04:05Z",
		"duration('90s')":                            "1m30s",
		"b'abc'":                                     "YWJj",
		"cel.bind(n, size(resources), n * n)":        int64(4),
		"release":                                    map[string]any{"name": "web", "namespace": "shop", "revision": int64(3), "status": "deployed", "chart": "podset-0.1.0", "chartVersion": "0.1.0", "appVersion": "1.37"},
	} {
		result := compile(t, map[string]string{"a": expression}).Evaluate(input())
		if len(result.Failures) > 0 {
			t.Errorf("%s: %v", expression, result.Failures)
		}
		if got, told := result.Values["a"]; !told || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", expression, got, want)
		}
		// The value must survive a round trip, or the status would be written repeatedly.
		data, err := json.Marshal(result.Values["a"])
		if err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		if strings.Contains(string(data), "null,") {
			t.Errorf("%s gives %s", expression, data)
		}
	}
}

// The status has room for some large fields, and later small ones.
func TestEvaluate_FieldsShareALimit(t *testing.T) {
	large := "lists.range(20).map(x, '" + strings.Repeat("x", 1000) + "')"
	result := compile(t, map[string]string{"a": large, "b": large, "c": "release.name"}).Evaluate(input())
	if len(result.Failures) != 1 || result.Failures[0].Field != "b" || result.Values["a"] == nil || result.Values["b"] != nil || result.Values["c"] == nil {
		t.Errorf("failures are %v", result.Failures)
	}
	// A Secret has room for each output.
	sensitive := input()
	sensitive.Sensitive = true
	if failed := compile(t, map[string]string{"a": large, "b": large}).Evaluate(sensitive).Failures; len(failed) > 0 {
		t.Errorf("outputs for a Secret fail: %v", failed)
	}
}

func TestEvaluate_FailureAffectsOneField(t *testing.T) {
	for _, test := range []struct{ name, expression, want string }{
		{"a key that is not there", "values.absent", "no such key: absent"},
		{"a text that is no number", "int(values['storage-size'])", "type conversion error from 'string' to 'int'"},
		{"beyond a list", "observed.pods[7].metadata.name", "index out of bounds: 7"},
		{"a type that was not known", "string(observed.pods[0].metadata)", "no such overload"},
		{"a list that is long", "lists.range(100000000)", "exceeds maximum allowed"},
		{"division", "1 / (values.replicas - 2)", "division by zero"},
		{"cost", "lists.range(9999).map(x, lists.range(9999).map(y, x * y)).size()", "the evaluation exceeds the limit of 250000 steps"},
		{"size", "lists.range(9999).map(x, 'a text of some length')", "the fields up to this one are larger than 32 KiB"},
		{"size of a key", "{lists.range(200).map(x, '" + strings.Repeat("x", 1000) + "').join(): 1}", "the fields up to this one are larger than 32 KiB"},
		{"infinity", "values.ratio / 0.0", "which JSON cannot represent"},
		{"a type", "[type(1)]", "the result is a type"},
		{"a large number", "18446744073709551615u", "too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			result := compile(t, map[string]string{"bad": test.expression, "good": "release.name", "other": "size(observed.pods)"}).Evaluate(input())
			if len(result.Failures) != 1 || result.Failures[0].Field != "bad" || !strings.Contains(result.Failures[0].Message, test.want) {
				t.Errorf("failures are %v, want one of bad with %q", result.Failures, test.want)
			}
			if value, told := result.Values["bad"]; !told || value != nil {
				t.Errorf("the field is %v", value)
			}
			if result.Values["good"] != "web" || result.Values["other"] != int64(3) {
				t.Errorf("other fields are %v", result.Values)
			}
		})
	}
}

func TestEvaluate_FailsForUnobservedObjects(t *testing.T) {
	in := input()
	in.Observed = map[string]any{"claims": []any{}}
	in.Unobserved = map[string]string{"pods": "Pods may not be watched"}
	result := compile(t, map[string]string{
		"direct": "size(observed.pods)", "computed": "['pods'].map(n, size(observed[n]))[0]", "other": "size(observed.claims)",
	}).Evaluate(in)
	if text := fmt.Sprint(result.Failures); text != "[computed: Pods may not be watched direct: Pods may not be watched]" {
		t.Error(text)
	}
	if result.Values["other"] != int64(0) {
		t.Errorf("%v", result.Values)
	}
}

func TestEvaluate_ReadsValuesOnceIfNeeded(t *testing.T) {
	reads := 0
	in := input()
	in.Values = func() map[string]any {
		reads++
		return map[string]any{"a": int64(1)}
	}
	compile(t, map[string]string{"a": "release.name"}).Evaluate(in)
	if reads != 0 {
		t.Errorf("values were read %d times, want never", reads)
	}
	result := compile(t, map[string]string{"a": "values.a", "b": "values.a + values.a"}).Evaluate(in)
	if reads != 1 || result.Values["a"] != int64(1) || result.Values["b"] != int64(2) {
		t.Errorf("values were read %d times: %v", reads, result)
	}
	// Without values the fields that read them are left out.
	in.Values = nil
	result = compile(t, map[string]string{"a": "values.a", "b": "release.name"}).Evaluate(in)
	if _, found := result.Values["a"]; found || len(result.Failures) > 0 || result.Values["b"] != "web" {
		t.Errorf("%v", result)
	}
}

func TestEvaluate_RedactsSecrets(t *testing.T) {
	in := input()
	in.Values = func() map[string]any {
		return map[string]any{"password": "canary-1", "port": int64(76543), "ratio": 1234.5}
	}
	in.Redact = func(text string) string {
		return strings.NewReplacer("canary-1", "[redacted]", "76543", "[redacted]", "1234.5", "[redacted]").Replace(text)
	}
	result := compile(t, map[string]string{
		"text": "'it is ' + values.password", "key": "{values.password: 1}", "error": "int(values.password)",
		"number": "values.port", "fraction": "[values.ratio]", "good": "release.name",
	}).Evaluate(in)
	text := fmt.Sprint(result)
	for _, canary := range []string{"canary-1", "76543", "1234.5"} {
		if strings.Contains(text, canary) {
			t.Errorf("%s is not redacted: %s", canary, text)
		}
	}
	if result.Values["text"] != "it is [redacted]" || result.Values["good"] != "web" || len(result.Failures) != 3 {
		t.Error(text)
	}
}

// TestEvaluate_FailsForOtherTypeThanCRD: the API server would reject the whole status.
func TestEvaluate_FailsForOtherTypeThanCRD(t *testing.T) {
	in := input()
	in.Values = func() map[string]any {
		return map[string]any{"numbers": []any{int64(1)}, "nulls": []any{nil}, "texts": []any{"b"}}
	}
	for expression, want := range map[string]string{
		"['a'] + values.texts":   "",
		"['a'] + values.numbers": "a: the result is a number, but the type in the CRD is string",
		"['a'] + values.nulls":   "a: the result is a list with null, but the item type in the CRD is string",
		"[1.5] + values.numbers": "",
		"[1] + values.texts":     "a: the result is a string, but the type in the CRD is integer",
		"[true] + values.texts":  "a: the result is a string, but the type in the CRD is boolean",
	} {
		if failures := compile(t, map[string]string{"a": expression}).Evaluate(in).Failures; fmt.Sprint(failures) != "["+want+"]" {
			t.Errorf("%s: %v", expression, failures)
		}
	}
}

// TestEvaluate_ManyObjects stays below the cost limit.
func TestEvaluate_ManyObjects(t *testing.T) {
	in := input()
	var pods []any
	for i := range 2000 {
		pods = append(pods, pod(fmt.Sprintf("web-%05d", 2000-i), i%2 == 0))
	}
	in.Observed["pods"] = pods
	result := compile(t, map[string]string{
		"names": "observed.pods.filter(p, !has(p.metadata.deletionTimestamp)).map(p, string(p.metadata.name)).sort()",
	}).Evaluate(in)
	if len(result.Failures) > 0 {
		t.Fatal(result.Failures)
	}
	if names, ok := result.Values["names"].([]any); !ok || len(names) != 1000 || names[0] != "web-00001" {
		t.Errorf("%v", result.Values)
	}
}

func TestEvaluate_ReadsObjectsWhenNeeded(t *testing.T) {
	fields, problems := kindstatus.CompileOutputs(map[string]string{
		"fine":     "objects.Service['a'].spec.port",
		"optional": "objects.Service[?'b'].?spec.?port.orValue(1)",
		"all":      "objects.Service",
		"names":    "objects.Service.map(name, name)",
		"failed":   "objects.Service['b'].spec.port",
		"missing":  "objects.Service[?'c'].?spec.?port.orValue(1)",
	}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var read []string
	object := func(name string, result any) func() any {
		return sync.OnceValue(func() any { read = append(read, name); return result })
	}
	result := fields.Evaluate(kindstatus.Input{
		Sensitive: true, Redact: func(string) string { return "hidden" },
		Objects: map[string]any{"Service": map[string]any{
			"a": object("a", map[string]any{"spec": map[string]any{"port": int64(80)}}),
			"b": object("b", &kindstatus.ReadError{Message: "unavailable"}),
		}},
	})
	if want := "[all: unavailable failed: unavailable optional: unavailable]"; fmt.Sprint(result.Failures) != want {
		t.Errorf("the failures are %v", result.Failures)
	}
	if result.Values["fine"] != int64(80) || result.Values["missing"] != int64(1) || fmt.Sprint(result.Values["names"]) != "[a b]" {
		t.Errorf("the values are %v", result.Values)
	}
	slices.Sort(read)
	if fmt.Sprint(read) != "[a b]" {
		t.Errorf("read %v, want each object once", read)
	}
	read = nil
	fields, _ = kindstatus.CompileOutputs(map[string]string{"names": "objects.Service.map(name, name)", "a": "objects.Service.a"}, nil)
	fields.Evaluate(kindstatus.Input{Objects: map[string]any{"Service": map[string]any{"a": object("a", "x"), "b": object("b", "y")}}})
	if fmt.Sprint(read) != "[a]" {
		t.Errorf("read %v, want only the named object", read)
	}
}
