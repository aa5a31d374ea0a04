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

// TestDocsTellTheLimits as they are.
func TestDocsTellTheLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, english := Defaults(), message.NewPrinter(language.English)
	for what, is := range map[string]string{
		"steps":                           english.Sprint(limits.Steps),
		"time":                            fmt.Sprintf("%.0f s", limits.Time.Seconds()),
		"memory":                          mebibytes(limits.Memory),
		"one value":                       mebibytes(limits.Value),
		"all that the chart writes":       mebibytes(limits.Output),
		"lines, keys and items of lists":  english.Sprint(limits.Tokens),
		"what is read":                    mebibytes(limits.Parse),
		"templates that call each other,": fmt.Sprintf("%d deep; a `tpl` counts as %d", limits.Depth, depthOfTpl),
	} {
		row := regexp.MustCompile(`(?m)^\| ` + what + `[^|]*\| ([^|]*) \|`).FindStringSubmatch(string(text))
		if len(row) != 2 || row[1] != is {
			t.Errorf("docs/security.md says of %s %q, and it is %s", what, row, is)
		}
	}
	if limits.LargeSteps*10 != limits.Steps || !strings.Contains(string(text), "a tenth of the steps, "+mebibytes(limits.LargeMemory)+" or a second") {
		t.Error("docs/security.md tells when a render is large otherwise than it is")
	}
}
