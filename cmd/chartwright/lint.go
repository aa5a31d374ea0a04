package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newLint() *cobra.Command {
	var watchesFile, output string
	var strict, list bool
	cmd := &cobra.Command{
		Use:   "lint [CHART...]",
		Short: "Find what is wrong with charts, under an operator above all",
		Long: `Look at charts, which are folders or .tgz archives; without any, at those of the
watches file, each with what its entry says.

Beside what helm lint finds, these are things that do no harm under a person's
helm install, and do under an operator, which renders a chart anew with every
edit and serves many custom resources by it. --rules lists them.

A chart silences rules by the annotation chartwright.dev/lint-ignore in its
Chart.yaml, with the names of rules, or on one line of a template by a comment
there or on the line before: {{/* chartwright:ignore RULE why */}}.

The exit code is 1 if there are errors and, with --strict, if there are
warnings.`,
		RunE: func(cmd *cobra.Command, charts []string) error {
			if list {
				return printRules(cmd, output)
			}
			findings, err := lintAll(charts, watchesFile)
			if err != nil {
				return err
			}
			if output != "" {
				err = plugin.Print(cmd.OutOrStdout(), output, findings)
			} else {
				err = lint.Text(cmd.OutOrStdout(), findings)
			}
			return errors.Join(err, verdict(findings, strict))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&watchesFile, "watches-file", "", "watches file whose charts to look at (default: ./watches.yaml or, if there is none, the one that is embedded)")
	outputFlag(cmd, &output)
	flags.BoolVar(&strict, "strict", false, "fail on warnings, too")
	flags.BoolVar(&list, "rules", false, "list all rules, with why they matter and what to do")
	cmd.MarkFlagsMutuallyExclusive("rules", "watches-file")
	return cmd
}

// lintAll lints charts or, if none is named, those of a watches file.
func lintAll(charts []string, watchesFile string) ([]lint.Finding, error) {
	var targets []lint.Target
	findings := []lint.Finding{}
	for _, path := range charts {
		chart, err := catalog.OpenChart(path)
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
			path := kind.Watch.Chart
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(kind.File), path)
			}
			targets = append(targets, lint.Target{Path: path, Kind: kind})
		}
	}
	for _, target := range targets {
		found, err := lint.Run(target)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// verdict is an error where lint is to fail.
func verdict(findings []lint.Finding, strict bool) error {
	bad, doubtful := lint.Count(findings, lint.Error), lint.Count(findings, lint.Warning)
	if bad == 0 && (doubtful == 0 || !strict) {
		return nil
	}
	return fmt.Errorf("lint: errors: %d, warnings: %d", bad, doubtful)
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
