package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newCRD() *cobra.Command {
	var charts chartsFolder
	var watchesFile, dir, old, output string
	var analysis analysisFlags
	cmd := &cobra.Command{
		Use:   "crd",
		Short: "Generate the CustomResourceDefinitions",
		Long: `Generate the CustomResourceDefinition (CRD) of each kind from the chart's
values.schema.json or, if it has none, from its values.yaml. Print the CRDs, or
write each to a file <group>_<plural>.yaml. Warnings name what the API server
cannot validate.

With --diff, compare with earlier CRDs and print the changes by class. The exit
code is 1 if a change breaks existing custom resources.`,
		Example: `  chartwright crd --output-dir config/crd/bases
  kubectl get crd -o yaml | chartwright crd --diff -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if old != "" && dir != "" {
				return errors.New("--diff and --output-dir cannot be combined")
			}
			kinds, err := loadAll(cmd, watchesFile, charts)
			if err != nil {
				return err
			}
			definitions, err := generateCRDs(cmd, kinds, analysis.analyzer(cmd))
			if err != nil {
				return err
			}
			switch {
			case old != "":
				return diffCRDs(cmd, old, definitions, output)
			case dir != "":
				return writeCRDs(cmd, dir, definitions)
			default:
				return printCRDs(cmd, definitions, output)
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file (default: "+defaultWatches+")")
	charts.add(cmd)
	flags.StringVar(&dir, "output-dir", "", "folder for the files (default: print the CRDs)")
	analysis.add(cmd)
	flags.StringVar(&old, "diff", "", "compare with the CRDs in a folder or file, - for standard input (default: none)")
	plugin.ChoiceFlag(cmd, &output, "output", "o", "output format (default: yaml; with --diff: text)", "json", "yaml")
	return cmd
}

func generateCRDs(cmd *cobra.Command, kinds []catalog.Kind, analyzer *permissions.Analyzer) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions, warnings := make([]*apiextensionsv1.CustomResourceDefinition, len(kinds)), make([][]crd.Warning, len(kinds))
	finder := &landing.Finder{Store: analyzer.Store}
	err := analyzer.Each(len(kinds), func(i int) (err error) {
		definitions[i], warnings[i], err = crd.GenerateWith(kinds[i], finder)
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	for i, kind := range kinds {
		definition := definitions[i]
		if other, exists := seen[definition.Name]; exists {
			return nil, fmt.Errorf("kinds %s and %s have the same CustomResourceDefinition %s: change the plural of one of them", other, kind.Kind, definition.Name)
		}
		seen[definition.Name] = kind.Kind
		for _, warning := range warnings[i] {
			cmd.PrintErrf("Warning: %s: %s\n", kind.Kind, warning)
		}
	}
	return definitions, nil
}

func printCRDs(cmd *cobra.Command, definitions []*apiextensionsv1.CustomResourceDefinition, output string) error {
	var items []any
	for _, definition := range definitions {
		data, err := crd.Marshal(definition)
		if err != nil {
			return err
		}
		var item any
		if err := yaml.Unmarshal(data, &item); err != nil {
			return err
		}
		items = append(items, item)
		if output == "json" {
			continue
		}
		if _, err := cmd.OutOrStdout().Write(data); err != nil {
			return err
		}
	}
	if output == "json" {
		return printList(cmd, items)
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
		cmd.PrintErrf("Warning: %s: the watches file has no such kind: delete the file if the kind is no longer served\n", file)
	}
	return err
}

// diffCRDs compares CRDs with earlier ones from a folder, a file or standard input. It
// returns an error if a change breaks existing custom resources.
func diffCRDs(cmd *cobra.Command, old string, definitions []*apiextensionsv1.CustomResourceDefinition, output string) error {
	before, whole, err := readCRDs(cmd, old)
	if err != nil {
		return fmt.Errorf("--diff: %w", err)
	}
	differences := crd.Diff(before, definitions)
	if !whole {
		// A file can lack kinds of the watches file, and a cluster has other CRDs too.
		differences = slices.DeleteFunc(differences, func(d crd.Difference) bool { return d.State == crd.New || d.State == crd.Gone })
		if len(differences) == 0 {
			return errors.New("--diff: no CustomResourceDefinition belongs to a kind in the watches file: check --watches-file")
		}
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
		return fmt.Errorf("%s existing custom resources", api.Counted(breaking, "change breaks", "changes break"))
	}
	return nil
}

// readCRDs returns the earlier CRDs, and whether these are all of them.
func readCRDs(cmd *cobra.Command, old string) (found []*apiextensionsv1.CustomResourceDefinition, whole bool, err error) {
	if old == "-" {
		found, err = crd.Read(cmd.InOrStdin(), "stdin")
		return found, false, err
	}
	info, err := os.Stat(old)
	if err != nil {
		return nil, false, err
	}
	found, err = crd.ReadFiles(old)
	return found, info.IsDir(), err
}

func printDiff(to io.Writer, differences []crd.Difference) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, d := range differences {
		_, _ = fmt.Fprintf(table, "%s: %s\n", d.Name, summary(d))
		for _, line := range byClass(d.Changes) {
			_, _ = fmt.Fprintf(table, "  %s\n", line)
		}
	}
	return table.Flush()
}

// summary returns how a CRD changes.
func summary(d crd.Difference) string {
	switch d.State {
	case crd.New:
		return fmt.Sprintf("new kind %s", d.Kind)
	case crd.Gone:
		return fmt.Sprintf("kind %s is not in the watches file: its custom resources would not be reconciled", d.Kind)
	case crd.Changed:
		return api.Counted(d.Breaking(), "breaking change", "breaking changes")
	default:
		return "no relevant changes"
	}
}

// byClass returns a line for each change, breaking changes first. The same change in
// several API versions gives one line.
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
	// A stable sort keeps the order of the paths within a class. "BREAKING" sorts before
	// "harmless".
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(diffClass(a), diffClass(b)) })
	return lines
}

// diffClass returns the first two columns: BREAKING or harmless, and the class.
func diffClass(line string) string { return line[:strings.LastIndex(line, "\t")] }
