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
)

func newRBAC() *cobra.Command {
	var watchesFile, chartsDir, file, name, output string
	var options permissions.Options
	var check, strict bool
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Derive the rights that the operator needs",
		Long: `Derive the smallest ClusterRole that serves the kinds of the watches file: what
their charts render, with any values, and what the operator does for them.
With --namespaced it is a Role, for each of the namespaces of $WATCH_NAMESPACE.

Each rule has a comment that says what it is for. What could not be found out
is told on stderr, with file and line, and belongs into the key rbac of the
watches entry.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check && file == "" {
				return errors.New("--check: tell which file with --output-file")
			}
			kinds, err := loadAll(cmd, watchesFile, chartsDir)
			if err != nil {
				return err
			}
			if options.Operator == "" {
				// The name that generate uses.
				project := scaffold.Project{Config: filepath.Join(filepath.Dir(watchesFile), "config")}
				if options.Operator, err = project.Name(); err != nil {
					return err
				}
			}
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
			return tellUnresolved(cmd, report.Unresolved, strict)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file with the kinds; chart paths are relative to it (default: "+defaultWatches+")")
	chartsDirFlag(cmd, &chartsDir)
	flags.StringVar(&file, "output-file", "", "file to write, rather than print")
	flags.StringVarP(&output, "output", "o", "yaml", "yaml, or json for the rules alone with their reasons and what could not be found out")
	flags.StringVar(&name, "name", "manager-role", "name of the role")
	flags.StringVar(&options.Operator, "operator-name", "", "label app.kubernetes.io/name of the role (default: the name of the project, by config/default beside the watches file, else chartwright)")
	flags.BoolVar(&options.Namespaced, "namespaced", false, "a Role, for an operator that serves a few namespaces")
	flags.BoolVar(&options.InstallCRDs, "install-crds", false, "what the flag of that name of run takes, too")
	flags.BoolVar(&check, "check", false, "write nothing; fail if --output-file is missing or not up to date")
	flags.BoolVar(&strict, "strict", false, "fail if something could not be found out")
	return cmd
}

func formatRole(report *permissions.Report, name, format string) ([]byte, error) {
	switch format {
	case "yaml":
		return report.Role(name)
	case "json":
		data, err := json.MarshalIndent(report, "", "  ")
		return append(data, '\n'), err
	default:
		return nil, fmt.Errorf("--output: %q: expected yaml or json", format)
	}
}

// emit prints a generated file, writes it, or checks that it is as it should be.
func emit(cmd *cobra.Command, data []byte, file string, check bool) error {
	switch {
	case check:
		found, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if !bytes.Equal(found, data) {
			return fmt.Errorf("%s is not up to date: run 'chartwright rbac' with the same flags and without --check, or 'chartwright generate' in a project", file)
		}
		return nil
	case file != "":
		// It is for everybody to read, as the files around it are.
		return os.WriteFile(file, data, 0o644) //nolint:gosec // see above
	default:
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
}

func tellUnresolved(cmd *cobra.Command, unresolved []permissions.Unresolved, strict bool) error {
	for _, u := range unresolved {
		cmd.PrintErrf("Warning: %s\n", u)
	}
	if strict && len(unresolved) > 0 {
		return fmt.Errorf("%d places could not be found out, see above", len(unresolved))
	}
	return nil
}
