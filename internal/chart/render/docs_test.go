package render

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// TestDocsRenderLimits compares the limits in the documentation with those in the code.
func TestDocsRenderLimits(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/check-charts.md")
	if err != nil {
		t.Fatal(err)
	}
	internals, err := os.ReadFile("../../../docs/dev/rendering.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, english := Defaults(), message.NewPrinter(language.English)
	for what, is := range map[string]string{
		"steps":                              english.Sprint(limits.Steps),
		"time":                               fmt.Sprintf("%.0f s", limits.Time.Seconds()),
		"memory":                             mebibytes(limits.Memory),
		"one value":                          mebibytes(limits.Value),
		"output of the chart":                mebibytes(limits.Output),
		"lines, keys and list items":         english.Sprint(limits.Tokens),
		"input of `tpl`, `fromYaml`":         mebibytes(limits.Parse),
		"nested templates and nested values": fmt.Sprintf("%d deep; a `tpl` counts as %d", limits.Depth, depthOfTpl),
	} {
		row := regexp.MustCompile(`(?m)^\| ` + what + `[^|]*\| ([^|]*) \|`).FindStringSubmatch(string(text))
		if len(row) != 2 || row[1] != is {
			t.Errorf("docs/guides/check-charts.md: limit %s: got %q, want %s", what, row, is)
		}
	}
	if limits.LargeSteps*10 != limits.Steps || !strings.Contains(string(internals), "a tenth of the steps, "+mebibytes(limits.LargeMemory)+" or a second") {
		t.Error("docs/dev/rendering.md does not describe when a render is large")
	}
}
