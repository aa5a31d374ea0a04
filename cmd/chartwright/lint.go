package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newLint() *cobra.Command {
	var watchesFile, output string
	var strict, list bool
	var analysis analysisFlags
	cmd := &cobra.Command{
		Use:   "lint [CHART...]",
		Short: "Find problems in charts",
		Long: `Find problems in charts (folders or .tgz files), by default in those of the watches
file.
In addition to the problems that helm lint finds, the command finds problems that
occur if an operator renders a chart for many custom resources. --rules lists the
rules.

To silence rules, name them in the annotation chartwright.dev/lint-ignore in
Chart.yaml, or in a comment on the same or the previous line of a template:
{{/* chartwright:ignore RULE reason */}}.

The exit code is 1 if there are errors or, with --strict, warnings.`,
		Example: `  chartwright lint
  chartwright lint ./web postgres-1.2.3.tgz --strict`,
		RunE: func(cmd *cobra.Command, charts []string) error {
			if list {
				return printRules(cmd, output)
			}
			findings, err := lintAll(charts, watchesFile, analysis.analyzer(cmd))
			if err != nil {
				return err
			}
			if output != "" {
				err = plugin.Print(cmd.OutOrStdout(), output, findings)
			} else {
				err = lint.Text(cmd.OutOrStdout(), findings)
			}
			return errors.Join(err, lintError(findings, strict))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file that lists the charts (default: "+defaultWatches+")")
	plugin.OutputFlag(cmd, &output)
	analysis.add(cmd)
	flags.BoolVar(&strict, "strict", false, "fail on warnings")
	flags.BoolVar(&list, "rules", false, "list the rules, with reasons and fixes")
	cmd.MarkFlagsMutuallyExclusive("rules", "watches-file")
	return cmd
}

// lintAll lints the charts, by default those of the watches file.
func lintAll(charts []string, watchesFile string, analyzer *permissions.Analyzer) ([]lint.Finding, error) {
	var targets []lint.Target
	findings := []lint.Finding{}
	for _, path := range charts {
		chart, err := catalog.OpenChart(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("chart %s: not found: want the folder or .tgz of a chart", path)
		}
		if err != nil {
			findings = append(findings, lint.Broken(path, err))
			continue
		}
		targets = append(targets, lint.Standalone(path, chart))
	}
	if len(charts) == 0 {
		kinds, err := findKinds(watchesFile)
		if err != nil {
			return nil, err
		}
		for _, kind := range kinds {
			targets = append(targets, lint.Target{Path: catalog.Beside(kind.File, kind.Watch.Chart), Kind: kind})
		}
	}
	found := make([][]lint.Finding, len(targets))
	err := analyzer.Each(len(targets), func(i int) (err error) {
		found[i], err = lint.Run(targets[i], analyzer.Store)
		return err
	})
	return append(findings, slices.Concat(found...)...), err
}

// lintError returns the error for findings that make lint fail.
func lintError(findings []lint.Finding, strict bool) error {
	errorCount, warnings := lint.Count(findings, lint.Error), lint.Count(findings, lint.Warning)
	if errorCount == 0 && (warnings == 0 || !strict) {
		return nil
	}
	return fmt.Errorf("lint: errors: %d, warnings: %d", errorCount, warnings)
}

func printRules(cmd *cobra.Command, output string) error {
	rules := lint.Rules()
	if output != "" {
		return plugin.Print(cmd.OutOrStdout(), output, rules)
	}
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = fmt.Sprintf("%s (%s)\n  finds: %s\n  why:   %s\n  fix:   %s\n", rule.Name, rule.Severity, rule.Finds, rule.Why, rule.Fix)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), strings.Join(texts, "\n"))
	return err
}
