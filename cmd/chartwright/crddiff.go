package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

// diffCRDs compares definitions with those of a folder, a file or stdin, and
// fails if that breaks custom resources that there are.
func diffCRDs(cmd *cobra.Command, old string, definitions []*apiextensionsv1.CustomResourceDefinition, output string) error {
	before, whole, err := readCRDs(cmd, old)
	if err != nil {
		return fmt.Errorf("--diff: %w", err)
	}
	differences := crd.Diff(before, definitions)
	if !whole {
		// A file is of some kinds, and says nothing of others.
		differences = slices.DeleteFunc(differences, func(d crd.Difference) bool { return d.State == crd.New })
	}
	breaking := 0
	for _, d := range differences {
		breaking += d.Breaking()
	}
	if output == "json" {
		err = printDiffJSON(cmd.OutOrStdout(), differences, breaking)
	} else {
		err = printDiff(cmd.OutOrStdout(), differences)
	}
	if err != nil {
		return err
	}
	if breaking > 0 {
		return fmt.Errorf("%s custom resources that there are", countedChanges(breaking, "change breaks", "changes break"))
	}
	return nil
}

// readCRDs returns definitions of before, and whether they are all that there
// were.
func readCRDs(cmd *cobra.Command, old string) (found []*apiextensionsv1.CustomResourceDefinition, whole bool, err error) {
	if old == "-" {
		found, err = crd.Read(cmd.InOrStdin(), "stdin")
		return found, false, err
	}
	info, err := os.Stat(old)
	if err != nil {
		return nil, false, err
	}
	if info.IsDir() {
		found, err = crd.ReadDir(old)
		return found, true, err
	}
	found, err = crd.ReadFile(old)
	return found, false, err
}

func printDiffJSON(to io.Writer, differences []crd.Difference, breaking int) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Breaking    int              `json:"breaking"`
		Definitions []crd.Difference `json:"definitions"`
	}{breaking, differences})
}

func printDiff(to io.Writer, differences []crd.Difference) error {
	// In columns that are as wide as they need.
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, d := range differences {
		if _, err := fmt.Fprintf(table, "%s: %s\n", d.Name, became(d)); err != nil {
			return err
		}
		for _, line := range byClass(d.Changes) {
			if _, err := fmt.Fprintf(table, "  %s\n", line); err != nil {
				return err
			}
		}
	}
	return table.Flush()
}

// became says in a few words what has become of a definition.
func became(d crd.Difference) string {
	switch d.State {
	case crd.New:
		return fmt.Sprintf("the kind %s is new", d.Kind)
	case crd.Gone:
		return fmt.Sprintf("the kind %s is in no entry of the watches file: nobody would serve its resources", d.Kind)
	case crd.Changed:
		return countedChanges(d.Breaking(), "breaking change", "breaking changes")
	default:
		return "nothing that matters has changed"
	}
}

// byClass returns a line for each change, breaking classes first. What is the
// same in several versions is told once.
func byClass(changes []compat.Change) []string {
	var lines []string
	for _, c := range changes {
		mark := "harmless"
		if c.Breaking {
			mark = "BREAKING"
		}
		line := fmt.Sprintf("%s\t%s\t%s", mark, c.Class, c)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	// Of one class in the order of the paths, as they came. B is before h.
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(diffClass(a), diffClass(b)) })
	return lines
}

// diffClass returns the first two columns of a line.
func diffClass(line string) string { return line[:strings.LastIndex(line, "\t")] }

func countedChanges(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
