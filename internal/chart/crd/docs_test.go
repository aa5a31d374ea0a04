package crd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocsTable generates the table of constructs in docs/dev/schema-constructs.md.
func TestDocsTable(t *testing.T) {
	want := docsTable(t)
	testenv.Part(t, "dev/schema-constructs.md", "constructs", want)
	if count := strings.Count(want, "\n") - 2; count < 60 {
		t.Errorf("got %d constructs in the table, want at least 60", count)
	}
}

func docsTable(t *testing.T) string {
	t.Helper()
	verdicts := verdicts(t)
	var table strings.Builder
	table.WriteString("| in values.schema.json | unchanged in a CRD | converted to | checked only by Helm |\n|---|---|---|---|\n")
	for _, c := range constructs(t) {
		var left []string
		for _, lost := range c.Lost {
			left = append(left, strings.TrimPrefix(lost, "spec."))
		}
		for _, gone := range c.Gone {
			left = append(left, strings.TrimPrefix(gone, "spec.")+" (Helm does not check it either)")
		}
		name := c.Name
		if c.Draft != 0 {
			name += fmt.Sprintf(" (draft %s)", map[int]string{4: "4", 6: "6", 7: "7", 2019: "2019-09"}[c.Draft])
		}
		parts := []string{code(t, c.Schema)}
		if c.Definitions != nil {
			parts = append(parts, "definitions "+code(t, c.Definitions))
		}
		for _, keyword := range slices.Sorted(maps.Keys(c.Root)) {
			parts = append(parts, keyword+" "+code(t, c.Root[keyword]))
		}
		if c.Defaults != nil {
			parts = append(parts, "default "+code(t, c.Defaults))
		}
		fmt.Fprintf(&table, "| %s: %s | %s | %s | %s |\n", cell(name), strings.Join(parts, ", "), cell(verdicts[c.Name]), code(t, c.Want), cell(strings.Join(left, "; ")))
	}
	return table.String()
}

// code formats JSON for a table cell.
func code(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatal(err)
	}
	return "`" + strings.ReplaceAll(compact.String(), "|", `\|`) + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
