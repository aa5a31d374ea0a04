package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newCRD() *cobra.Command {
	var watchesFile, chartsDir, dir, old, output string
	var check bool
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Derive the CustomResourceDefinitions from the charts",
		Long: `Derive the CustomResourceDefinition of each kind from its chart's
values.schema.json or, where the chart has none, from its values.yaml, and print
them all, or write one file a kind, named <group>_<plural>.yaml, into a folder.

What the API server cannot check of a schema is told on stderr.

--diff tells what the charts, as they are now, break for custom resources that
there are: it compares with definitions of before, by class of change. The exit
code is 1 if anything breaks.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case check && dir == "":
				return errors.New("--check: tell which files with --output-dir")
			case old != "" && dir != "":
				return errors.New("--diff and --output-dir: one at a time, the comparison before the new files")
			case output != "" && old == "":
				return errors.New("--output is for --diff: definitions are YAML")
			}
			kinds, err := loadAll(cmd, watchesFile, chartsDir)
			if err != nil {
				return err
			}
			definitions, err := generateCRDs(cmd, kinds)
			if err != nil {
				return err
			}
			switch {
			case old != "":
				return diffCRDs(cmd, old, definitions, output)
			case check:
				return checkCRDs(dir, definitions)
			case dir != "":
				return writeCRDs(cmd, dir, definitions)
			default:
				return printCRDs(cmd, definitions)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file with the kinds; chart paths are relative to it (default: "+defaultWatches+")")
	chartsDirFlag(cmd, &chartsDir)
	flags.StringVar(&dir, "output-dir", "", "folder to write one file a kind into, rather than print them")
	flags.BoolVar(&check, "check", false, "write nothing; fail if a file in --output-dir is missing, not up to date, or of a kind that is gone")
	flags.StringVar(&old, "diff", "", "folder or file of definitions to compare with, - for what kubectl get crd -o yaml prints")
	outputFlag(cmd, &output)
	return cmd
}

func generateCRDs(cmd *cobra.Command, kinds []catalog.Kind) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(kinds))
	seen := map[string]string{}
	for _, kind := range kinds {
		definition, warnings, err := crd.Generate(kind)
		if err != nil {
			return nil, err
		}
		if other, exists := seen[definition.Name]; exists {
			return nil, fmt.Errorf("the kinds %s and %s would share the CustomResourceDefinition %s", other, kind.Kind, definition.Name)
		}
		seen[definition.Name] = kind.Kind
		for _, warning := range warnings {
			cmd.PrintErrf("Warning: %s: %s\n", kind.Kind, warning)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

func printCRDs(cmd *cobra.Command, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		data, err := crd.Marshal(definition)
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(data); err != nil {
			return err
		}
	}
	return nil
}

func writeCRDs(cmd *cobra.Command, dir string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		if err := crd.Write(dir, definition); err != nil {
			return err
		}
	}
	left, err := crd.Leftovers(dir, definitions)
	for _, file := range left {
		cmd.PrintErrf("Warning: %s is of no kind of the watches file: delete it, if nothing serves the kind any more\n", file)
	}
	return err
}

func checkCRDs(dir string, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	var problems []string
	for _, definition := range definitions {
		stale, err := crd.Stale(dir, definition)
		if err != nil {
			return err
		}
		if stale {
			problems = append(problems, filepath.Join(dir, crd.FileName(definition))+" is not what its chart says: run 'make generate'")
		}
	}
	left, err := crd.Leftovers(dir, definitions)
	if err != nil {
		return err
	}
	for _, file := range left {
		problems = append(problems, file+" is of no kind of the watches file: delete it")
	}
	if len(problems) > 0 {
		return fmt.Errorf("not up to date:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}

// diffCRDs compares definitions with those of a folder, a file or stdin, and
// fails if that breaks custom resources that there are.
func diffCRDs(cmd *cobra.Command, old string, definitions []*apiextensionsv1.CustomResourceDefinition, output string) error {
	before, whole, err := readCRDs(cmd, old)
	if err != nil {
		return fmt.Errorf("--diff: %w", err)
	}
	differences := crd.Diff(before, definitions)
	if !whole {
		// A file may contain only some of the kinds.
		differences = slices.DeleteFunc(differences, func(d crd.Difference) bool { return d.State == crd.New })
	}
	breaking := 0
	for _, d := range differences {
		breaking += d.Breaking()
	}
	if output != "" {
		err = plugin.Print(cmd.OutOrStdout(), output, map[string]any{"breaking": breaking, "definitions": differences})
	} else {
		err = printDiff(cmd.OutOrStdout(), differences)
	}
	if err != nil {
		return err
	}
	if breaking > 0 {
		return fmt.Errorf("%s custom resources that there are", migrate.Counted(breaking, "change breaks", "changes break"))
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

func printDiff(to io.Writer, differences []crd.Difference) error {
	// In columns that are as wide as they need.
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, d := range differences {
		_, _ = fmt.Fprintf(table, "%s: %s\n", d.Name, became(d))
		for _, line := range byClass(d.Changes) {
			_, _ = fmt.Fprintf(table, "  %s\n", line)
		}
	}
	return table.Flush()
}

// became summarizes the changes of a definition.
func became(d crd.Difference) string {
	switch d.State {
	case crd.New:
		return fmt.Sprintf("the kind %s is new", d.Kind)
	case crd.Gone:
		return fmt.Sprintf("the kind %s is in no entry of the watches file: nobody would serve its resources", d.Kind)
	case crd.Changed:
		return migrate.Counted(d.Breaking(), "breaking change", "breaking changes")
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
