package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newRBAC() *cobra.Command {
	var charts chartsFolder
	var watchesFile, file, name, output string
	var options permissions.Options
	var check, strict bool
	var analysis analysisFlags
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Generate the RBAC role of the operator",
		Long: `Generate the smallest ClusterRole for the kinds of the watches file: the rules for
everything that the charts render with any values, and for the operator itself.
With --namespaced it is a Role, to apply in each namespace of $WATCH_NAMESPACE.

A comment gives the purpose of each rule. Warnings name the lines of templates for
which no rules can be derived: add these rules to the key rbac of the entry.`,
		Example: `  chartwright rbac --output-file config/rbac/role.yaml
  chartwright rbac --namespaced -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check && file == "" {
				return errors.New("--check requires --output-file")
			}
			kinds, err := loadAll(cmd, watchesFile, charts)
			if err != nil {
				return err
			}
			if options.Operator == "" {
				// generate uses the same name.
				project := scaffold.Project{Config: filepath.Join(filepath.Dir(watchesFile), "config")}
				if options.Operator, err = project.Name(); err != nil {
					return err
				}
			}
			options.Analyzer = analysis.analyzer(cmd)
			report, err := permissions.Derive(kinds, options)
			if err != nil {
				return err
			}
			role, err := formatRole(report, name, output)
			if err != nil {
				return err
			}
			if err := emit(cmd, role, file, check); err != nil {
				return err
			}
			return reportUnresolved(cmd, report.Unresolved, strict)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file (default: "+defaultWatches+")")
	charts.add(cmd)
	flags.StringVar(&file, "output-file", "", "file to write (default: print the role)")
	output = "yaml"
	plugin.ChoiceFlag(cmd, &output, "output", "o", "output format; json includes reasons and unresolved lines", "yaml", "json")
	flags.StringVar(&name, "name", "manager-role", "name of the role")
	flags.StringVar(&options.Operator, "operator-name", "", "label app.kubernetes.io/name (default: project name, else chartwright)")
	flags.BoolVar(&options.Namespaced, "namespaced", false, "generate a Role, for an operator limited to some namespaces")
	flags.BoolVar(&options.InstallCRDs, "install-crds", false, "add the rules for run --install-crds")
	flags.BoolVar(&options.ChartKinds, chartKindsFlag, false, "add the rules for run --chart-kinds, except those for the charts")
	flags.BoolVar(&check, "check", false, "write nothing; fail if --output-file is not up to date")
	analysis.add(cmd)
	flags.BoolVar(&strict, "strict", false, "fail if the rules for a template line cannot be derived")
	return cmd
}

func formatRole(report *permissions.Report, name, format string) ([]byte, error) {
	if format == "yaml" {
		return report.Role(name)
	}
	data, err := json.MarshalIndent(report, "", "  ")
	return append(data, '\n'), err
}

// emit prints the data, writes it to a file, or checks that the file is up to date.
func emit(cmd *cobra.Command, data []byte, file string, check bool) error {
	switch {
	case check:
		found, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !bytes.Equal(found, data) {
			return fmt.Errorf("%s is outdated: run 'chartwright rbac' with the same flags and without --check, or 'chartwright generate' in a project", file)
		}
		return nil
	case file != "":
		return os.WriteFile(file, data, 0o644) //nolint:gosec // readable, like the files around it
	default:
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
}

func reportUnresolved(cmd *cobra.Command, unresolved []permissions.Unresolved, strict bool) error {
	for _, u := range unresolved {
		cmd.PrintErrf("Warning: %s\n", u)
	}
	if strict && len(unresolved) > 0 {
		return fmt.Errorf("no rules derived for %d lines of templates, see above", len(unresolved))
	}
	return nil
}
