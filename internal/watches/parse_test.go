package watches_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/watches"
)

// lines joins the lines of a file.
func lines(of ...string) string { return strings.Join(of, "\n") + "\n" }

func TestParse_ReportsProblems(t *testing.T) {
	for _, test := range []struct {
		name string
		file string
		// want holds the beginnings of the problems, in order.
		want []string
	}{
		{
			name: "an empty file",
			file: "",
			want: []string{"watches.yaml: the file is empty"},
		},
		{
			name: "a file of comments",
			file: "# nothing yet\n",
			want: []string{"watches.yaml: the file is empty"},
		},
		{
			name: "an empty document",
			file: "null\n",
			want: []string{"watches.yaml:1: expected a list of entries with group, version, kind and chart, found nothing"},
		},
		{
			name: "a map in place of the list",
			file: lines("# the kinds", "version: v1", "kind: A", "chart: a"),
			want: []string{"watches.yaml:2: expected a list of entries with group, version, kind and chart, found a map"},
		},
		{
			name: "a text in place of the list",
			file: "PodSet\n",
			want: []string{`watches.yaml:1: expected a list of entries with group, version, kind and chart, found "PodSet"`},
		},
		{
			name: "several documents",
			file: lines("- {version: v1, kind: A, chart: a}", "---", "- {version: v1, kind: B, chart: b}"),
			want: []string{"watches.yaml: expected one YAML document, found several"},
		},
		{
			name: "a syntax error",
			file: lines("- version: v1", "  kind: A", "  chart: [a"),
			want: []string{"watches.yaml:3: invalid YAML: did not find expected ',' or ']'"},
		},
		{
			name: "a key that is indented less than its entry",
			file: lines("- version: v1", "  kind: A", " chart: a"),
			want: []string{"watches.yaml:3: invalid YAML: did not find expected '-' indicator"},
		},
		{
			name: "a tab in the indentation",
			file: lines("- version: v1", "\tkind: A"),
			want: []string{"watches.yaml:2: invalid YAML: "},
		},
		{
			name: "an entry that is a text",
			file: lines("- PodSet"),
			want: []string{`watches.yaml:1: expected an entry with group, version, kind and chart, found "PodSet"`},
		},
		{
			name: "an entry that is a list",
			file: lines("- [a]"),
			want: []string{"watches.yaml:1: expected an entry with group, version, kind and chart, found a list"},
		},
		{
			name: "an entry that is empty",
			file: lines("- {version: v1, kind: A, chart: a}", "-"),
			want: []string{"watches.yaml:2: expected an entry with group, version, kind and chart, found nothing"},
		},
		{
			name: "an unknown key",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  chrat: b"),
			want: []string{`watches.yaml:4: unknown key "chrat": did you mean chart?`},
		},
		{
			name: "a known key in other case",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  Chart: b"),
			want: []string{`watches.yaml:4: unknown key "Chart"`},
		},
		{
			name: "a key that appears twice in an entry",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  kind: B"),
			want: []string{`watches.yaml:4: key "kind" appears twice in one entry, first on line 2`},
		},
		{
			name: "a group and kind that appear twice",
			file: lines("- {group: g, version: v1, kind: A, chart: a}", "- {group: h, version: v1, kind: A, chart: a}", "- {group: g, version: v2, kind: A, chart: b}"),
			want: []string{"watches.yaml:3: A.g has two entries, the first on line 1"},
		},
		{
			name: "an entry without anything",
			file: lines("- {}"),
			want: []string{
				"watches.yaml:1: the entry has no version",
				"watches.yaml:1: the entry has no kind",
				"watches.yaml:1: the entry has no chart",
			},
		},
		{
			name: "a missing version",
			file: lines("", "- kind: A", "  chart: a"),
			want: []string{"watches.yaml:2: the entry has no version"},
		},
		{
			name: "empty fields",
			file: lines("- version: ''", "  kind: ''", "  chart: ''"),
			want: []string{"watches.yaml:1: version is empty", "watches.yaml:2: kind is empty", "watches.yaml:3: chart is empty"},
		},
		{
			name: "a number for a text",
			file: lines("- version: v1", "  kind: 7", "  chart: a"),
			want: []string{"watches.yaml:2: kind: expected a string, found a number", "watches.yaml:2: kind is empty"},
		},
		{
			name: "a text for a bool",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  watchDependentResources: sometimes"),
			want: []string{"watches.yaml:4: watchDependentResources: expected a boolean, found a string"},
		},
		{
			name: "a list for a map",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  overrideValues:", "  - a=b"),
			want: []string{"watches.yaml:5: overrideValues: expected a map, found a list"},
		},
		{
			name: "a list for an override",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  overrideValues: {tags: [a]}"),
			want: []string{"watches.yaml:4: overrideValues: tags: expected a string, a number or a boolean"},
		},
		{
			name: "a duration without a unit",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  reconcilePeriod: 10 apples"),
			want: []string{"watches.yaml:4: reconcilePeriod: time: "},
		},
		{
			name: "durations and numbers out of range",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  reconcilePeriod: -1s", "  maxConcurrentReconciles: -1", "  maxHistory: 0", "  timeout: 0s"),
			want: []string{
				"watches.yaml:4: reconcilePeriod is -1s: expected 0 (never) or more",
				"watches.yaml:5: maxConcurrentReconciles is -1: expected at least 1",
				"watches.yaml:6: maxHistory is 0: expected at least 1",
				"watches.yaml:7: timeout is 0s: expected more than 0",
			},
		},
		{
			name: "a fraction of a worker",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  maxConcurrentReconciles: 1.5"),
			want: []string{"watches.yaml:4: maxConcurrentReconciles: expected an integer, found number 1.5"},
		},
		{
			name: "an unknown key in a selector",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  selector: {labels: {a: b}}"),
			want: []string{`watches.yaml:4: selector: unknown field "labels"`},
		},
		{
			name: "a selector with an unknown operator",
			file: lines("- version: v1", "  kind: A", "  chart: a", "  selector:", "    matchExpressions:", "    - {key: a, operator: Is, values: [b]}"),
			want: []string{`watches.yaml:4: selector: "Is" is not a valid label selector operator`},
		},
		{
			name: "everything at once",
			file: lines(
				"- version: v1",
				"  kind: A",
				"  chart: a",
				"  color: blue",
				"- group: g",
				"  version: v1",
				"  kind: B",
				"- version: v1",
				"  kind: A",
				"  chart: b",
				"  timeout: soon",
			),
			want: []string{
				`watches.yaml:4: unknown key "color"`,
				"watches.yaml:5: the entry has no chart",
				"watches.yaml:8: A has two entries, the first on line 1",
				"watches.yaml:11: timeout: time: ",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := watches.Parse("watches.yaml", []byte(test.file))
			expectProblems(t, err, test.want)
			if text := err.Error(); strings.Count(text, "\n") != len(test.want)-1 {
				t.Errorf("the error is not one line a problem:\n%s", text)
			}
		})
	}
}

// expectProblems of a file, in order, by how they begin.
func expectProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var problems watches.LineErrors
	if !errors.As(err, &problems) {
		t.Fatalf("Parse returned %v, want LineErrors", err)
	}
	if len(problems) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(problems), len(want), err)
	}
	for i, want := range want {
		if got := problems[i].Error(); !strings.HasPrefix(got, want) {
			t.Errorf("problem %d is\n  %s\nwant it to begin\n  %s", i, got, want)
		}
	}
}

func TestParse_AcceptsEntries(t *testing.T) {
	// Every key of the operator-sdk's Helm operator and of Chartwright.
	file := lines(
		"# a comment",
		"- group: app.example.com",
		"  version: v1alpha1",
		"  kind: PodSet",
		"  chart: charts/podset",
		"  watchDependentResources: false",
		"  overrideValues:",
		"    image.repository: $IMAGE",
		"  selector:",
		"    matchLabels: {tier: gold}",
		"  reconcilePeriod: 1h30m",
		"  maxConcurrentReconciles: 3",
		"  dryRunOption: server",
		"  maxHistory: 4",
		"  timeout: 90s",
		"-",
		"  chart: &shared charts/other",
		"  version: v1",
		"  kind: Bare",
		"- {version: v1, kind: Alias, chart: *shared}",
	)
	got, err := watches.Parse("watches.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 {
		t.Fatalf("%d entries, want 3", len(got))
	}
	full, bare, alias := got[0], got[1], got[2]
	if want := (schema.GroupVersionKind{Group: "app.example.com", Version: "v1alpha1", Kind: "PodSet"}); full.GVK() != want {
		t.Errorf("the kind is %v, want %v", full.GVK(), want)
	}
	for _, check := range []struct {
		name      string
		got, want any
	}{
		{"chart", full.Chart, "charts/podset"},
		{"watchDependentResources", *full.WatchDependentResources, false},
		{"overrideValues", full.OverrideValues, watches.OverrideValues{"image.repository": "$IMAGE"}},
		{"selector", full.Selector.MatchLabels, map[string]string{"tier": "gold"}},
		{"reconcilePeriod", full.ReconcilePeriod.Duration, 90 * time.Minute},
		{"maxConcurrentReconciles", *full.MaxConcurrentReconciles, 3},
		{"dryRunOption", full.DryRunOption, "server"},
		{"maxHistory", full.HistoryLimit(), 4},
		{"timeout", full.ActionTimeout(), 90 * time.Second},
		{"the first entry's line", full.Line, 2},
		{"its chart's line", full.Lines["chart"], 5},
		{"the default of maxHistory", bare.HistoryLimit(), watches.DefaultMaxHistory},
		{"the default of timeout", bare.ActionTimeout(), watches.DefaultTimeout},
		{"the second chart's line", bare.Lines["chart"], 17},
		{"the chart by an alias", alias.Chart, "charts/other"},
		{"watchDependentResources where it is not written", bare.WatchDependentResources == nil, true},
	} {
		if diff := cmp.Diff(check.want, check.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", check.name, diff)
		}
	}
	problem := full.ErrorAt("chart", "it is broken").Error()
	if want := "watches.yaml:5: it is broken"; problem != want {
		t.Errorf("ErrorAt: %q, want %q", problem, want)
	}
}

func TestParse_AcceptsEmptyList(t *testing.T) {
	if got, err := watches.Parse("watches.yaml", []byte("[]\n")); err != nil || len(got) != 0 {
		t.Errorf("Parse returned %v, %v", got, err)
	}
}

func TestLineErrors_ErrIsNilWithoutProblems(t *testing.T) {
	if err := (watches.LineErrors{}).Err(); err != nil {
		t.Errorf("Err returned %v, want nil", err)
	}
	one := watches.LineErrors{{File: "f", Message: "m"}}
	if err := one.Err(); err == nil || err.Error() != "f: m" {
		t.Errorf("Err returned %v, want f: m", err)
	}
}

// FuzzParse looks for panics, and for files that are neither read nor refused
// at a line that they have.
func FuzzParse(f *testing.F) {
	f.Add("- {group: g, version: v1, kind: A, chart: a, overrideValues: {a.b: $C}}\n")
	f.Add("- version: v1\n  kind: A\n  chart: a\n  selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}\n")
	f.Add("---\n...\n---\n")
	f.Add("- &a [*a]\n")
	f.Add("- {? [a, b] : c}\n")
	f.Add("- {<<: {kind: A}, 1: 2, chart: !!binary aGVsbG8=, timeout: .nan}\n")
	f.Add("- !!map\n- ~\n- *missing\n")
	f.Fuzz(func(t *testing.T, file string) {
		got, err := watches.Parse("f", []byte(file))
		if err == nil {
			for _, w := range got {
				if w.Version == "" || w.Kind == "" || w.Chart == "" {
					t.Errorf("accepted an entry that lacks a field: %+v", w)
				}
			}
			return
		}
		var problems watches.LineErrors
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("an error that is no LineErrors: %v", err)
		}
		// A single CR also ends a line in YAML, as do NEL and the Unicode separators.
		last := 2 + strings.Count(file, "\n") + strings.Count(file, "\r") +
			strings.Count(file, "\u0085") + strings.Count(file, "\u2028") + strings.Count(file, "\u2029")
		for _, p := range problems {
			if p.Line < 0 || p.Line > last {
				t.Errorf("a problem on line %d of %d: %s", p.Line, last, p.Message)
			}
			if !strings.HasPrefix(p.Error(), "f:") {
				t.Errorf("a problem that does not name the file: %s", p.Error())
			}
			if p.Message == "" {
				t.Error("a problem without a message")
			}
		}
	})
}

func ExampleParse() {
	_, err := watches.Parse("watches.yaml", []byte("- kind: PodSet\n  chrat: charts/podset\n"))
	if problems, ok := errors.AsType[watches.LineErrors](err); ok {
		for _, p := range problems {
			fmt.Println(p.Line, strings.SplitN(p.Message, ":", 2)[0])
		}
	}
	// Output:
	// 1 the entry has no version
	// 1 the entry has no chart
	// 2 unknown key "chrat"
}
