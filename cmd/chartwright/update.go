package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/source"
)

func newUpdate() *cobra.Command {
	var project scaffold.Project
	var update scaffold.Update
	var fetch fetchFlags
	var finish planFlags
	var analysis analysisFlags
	var allow bool
	cmd := &cobra.Command{
		Use:   "update KIND",
		Short: "Update the chart of a kind from its source",
		Long: `Update the chart of a kind: fetch the newest version from the source in watches.yaml,
print what changes (CRD, default values, permissions, images), and update the copy in
charts/, the entry and the generated files.

These changes require a flag. With --dry-run, update lists them and writes nothing:

  --allow-breaking  changes of the CRD that break existing custom resources
  --force           overwriting edited files in the copy of the chart`,
		Example: `  chartwright update Web --dry-run
  chartwright update Web --chart-version ^1.2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			update.Kind = args[0]
			if cmd.Flags().Changed("allow") {
				update.Allow = &allow
			}
			current, err := fetch.newer(cmd, project, &update)
			if err != nil || current != "" {
				cmd.Print(current)
				return err
			}
			analysis.project(cmd, &project)
			plan, err := project.Update(update)
			if err != nil {
				return err
			}
			if finish.output == "" {
				if _, err := io.WriteString(cmd.OutOrStdout(), changesText(*plan.Changes)); err != nil {
					return err
				}
			}
			if err := finish.run(cmd, plan); err != nil {
				return err
			}
			return finish.nextTargets(cmd, plan, project, "verify", "test", "kind", "run")
		},
	}
	projectFlags(cmd, &project)
	fetch.add(cmd, true)
	flags := cmd.Flags()
	flags.BoolVar(&update.AllowBreaking, "allow-breaking", false, "allow CRD changes that break existing custom resources")
	flags.BoolVar(&update.Force, "force", false, "overwrite edited files in the copy of the chart")
	flags.BoolVar(&allow, "allow", false, "allow resources outside the namespace of a release")
	finish.dryRunFlag(cmd)
	analysis.add(cmd)
	return cmd
}

// newer fetches the chart of a kind from its recorded source. It returns a message if the
// chart of the kind is up to date.
func (f *fetchFlags) newer(cmd *cobra.Command, project scaffold.Project, update *scaffold.Update) (current string, err error) {
	entry, err := project.Find(update.Kind)
	if err != nil {
		return "", err
	}
	if entry.Source == nil {
		return "", fmt.Errorf("%s: the entry of %s has no source: to update the chart, run 'chartwright add CHART --kind %[2]s'", project.Watches, entry.Kind)
	}
	reference, err := source.Parse(entry.Source.Chart, entry.Source.Repo, f.version)
	if err != nil {
		return "", fmt.Errorf("%s: source of %s: %w", project.Watches, entry.Kind, err)
	}
	o, err := f.options(cmd)
	if err != nil {
		return "", err
	}
	chart, err := source.Fetch(cmd.Context(), reference, o)
	if err != nil {
		return "", err
	}
	update.Fetched = fetchedOf(chart)
	switch recorded := *entry.Source; {
	case recorded.Digest == chart.Pinned():
		return fmt.Sprintf("%s is up to date: chart version %s\n", entry.Kind, chart.Version), nil
	case f.version == "" && older(chart.Version, recorded.Version):
		return fmt.Sprintf("%s is up to date: chart version %s. The newest stable version is %s; to use it, set --chart-version\n", entry.Kind, recorded.Version, chart.Version), nil
	}
	return "", nil
}

// older reports whether a version precedes another.
func older(version, than string) bool {
	a, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	b, err := semver.NewVersion(than)
	return err == nil && a.LessThan(b)
}

// changesText formats what another version of a chart changes.
func changesText(c scaffold.Changes) string {
	var text strings.Builder
	fmt.Fprintf(&text, "chart %s -> %s\n", c.From, c.To)
	text.WriteString("CRD ")
	_ = printDiff(&text, []crd.Difference{c.CRD})
	for _, part := range []struct {
		name  string
		lines []string
	}{{"default values", c.Values}, {"permissions of the operator", c.Permissions}, {"images", c.Images}} {
		if len(part.lines) == 0 {
			fmt.Fprintf(&text, "%s: no changes\n", part.name)
			continue
		}
		fmt.Fprintf(&text, "%s:\n  %s\n", part.name, strings.Join(part.lines, "\n  "))
	}
	text.WriteString("\n")
	return text.String()
}
