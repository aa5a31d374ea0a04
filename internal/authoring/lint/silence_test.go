package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/authoring/lint"
)

// TestSilence_AppliesToCommentLinesAndNext checks that a comment silences its rules on
// its own lines and the next one, and that the annotation silences them everywhere.
func TestSilence_AppliesToCommentLinesAndNext(t *testing.T) {
	const random, clock = `{{ randAlphaNum 5 }}`, `{{ now }}`
	for _, test := range []struct {
		name, template, annotation string
		want                       []string
	}{
		{name: "no comment", template: "# " + random + "\n", want: []string{"warning random-value templates/b.yaml:1"}},
		{name: "on the line", template: "# " + random + " {{/* chartwright:ignore random-value it is a salt */}}\n"},
		{name: "on the line before", template: "{{- /* chartwright:ignore random-value it is a salt */ -}}\n# " + random + "\n"},
		{name: "two lines before", template: "{{/* chartwright:ignore random-value it is a salt */}}\n\n# " + random + "\n", want: []string{"warning random-value templates/b.yaml:3"}},
		{name: "on the line after", template: "# " + random + "\n{{/* chartwright:ignore random-value it is a salt */}}\n", want: []string{"warning random-value templates/b.yaml:1"}},
		{name: "by a comment of several lines", template: "{{- /*\nchartwright:ignore random-value, time-dependent\nit is a salt\n*/ -}}\n# " + random + clock + "\n"},
		{name: "without a reason", template: "{{/* chartwright:ignore random-value*/}}\n# " + random + "\n"},
		{name: "another rule", template: "{{/* chartwright:ignore time-dependent random-value without a comma */}}\n# " + random + clock + "\n", want: []string{"warning random-value templates/b.yaml:2"}},
		{name: "another comment", template: "{{/* about chartwright:ignore random-value */}}\n# " + random + "\n", want: []string{"warning random-value templates/b.yaml:2"}},
		{name: "by the annotation", annotation: "random-value", template: "# " + random + "\n# " + clock + "\n", want: []string{"warning time-dependent templates/b.yaml:2"}},
		{name: "by the annotation, two rules", annotation: "random-value, time-dependent", template: "# " + random + "\n# " + clock + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chartfile := clean["Chart.yaml"]
			if test.annotation != "" {
				chartfile += "annotations:\n  chartwright.dev/lint-ignore: " + test.annotation + "\n"
			}
			got := run(t, lint.Standalone("box", load(t, files{"Chart.yaml": chartfile, "templates/b.yaml": test.template})))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, test.template)
			}
		})
	}
}

func TestSilence_AnnotationSilencesFindingsWithoutLine(t *testing.T) {
	got := run(t, lint.Standalone("box", load(t, files{
		"Chart.yaml":         clean["Chart.yaml"] + "annotations: {chartwright.dev/lint-ignore: schema-missing}\n",
		"values.schema.json": "",
	})))
	if len(got) > 0 {
		t.Errorf("found %s", strings.Join(got, ", "))
	}
}
