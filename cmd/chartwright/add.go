package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newAdd() *cobra.Command {
	var project scaffold.Project
	var add scaffold.Add
	var finish planFlags
	var analysis analysisFlags
	var allow bool
	cmd := &cobra.Command{
		Use:   "add [CHART]",
		Short: "Add a kind for a chart",
		Long: `Add a kind for a Helm chart, a folder or a .tgz: copy the chart to charts/, add an
entry to watches.yaml, and generate the CRD, the RBAC rules and a sample. A chart
in charts/ is used where it is. --new creates a chart instead of CHART.

Run add again to update the copy of the chart and the generated files, and to
change the flags that you set. Samples, comments in watches.yaml, and your own
files in the copy are not changed. Unsafe changes require --allow, --force or
--replace-chart; --dry-run lists them.`,
		Example: `  chartwright add ../web --group shop.example.com --version v1alpha1
  chartwright add postgres-1.2.3.tgz --group db.example.com --version v1 --kind Database
  chartwright add --new api --group shop.example.com --version v1alpha1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (add.New != "") {
				return errors.New("expected either CHART or --new NAME")
			}
			if len(args) == 1 {
				add.Chart = args[0]
			}
			if cmd.Flags().Changed("allow") {
				add.Allow = &allow
			}
			analysis.project(cmd, &project)
			plan, err := project.Add(add)
			if err != nil {
				return err
			}
			if err := finish.run(cmd, plan); err != nil || finish.output != "" {
				return err
			}
			return printAdded(cmd, plan, project.Watches, finish.dryRun)
		},
	}
	projectFlags(cmd, &project)
	flags := cmd.Flags()
	flags.StringVar(&add.New, "new", "", "create a chart with this name, with Deployment, Service and Ingress (default: use CHART)")
	flags.StringVar(&add.Group, "group", "", "API group; without a dot, the domain of the project is appended (required for a new kind)")
	flags.StringVar(&add.Version, "version", "", "API version, such as v1alpha1 (required for a new kind)")
	flags.StringVar(&add.Kind, "kind", "", "name of the kind (default: name of the chart in CamelCase)")
	flags.StringVar(&add.Plural, "plural", "", "plural of a new kind, as kubebuilder forms it by default")
	flags.StringSliceVar(&add.ShortNames, "short-name", nil, "short names for kubectl (default: none)")
	flags.StringSliceVar(&add.Categories, "category", nil, "categories for kubectl, such as all (default: none)")
	plugin.ChoiceFlag(cmd, &add.Scope, "scope", "", "scope of the kind (default Namespaced)", "Namespaced", "Cluster")
	flags.StringVar(&add.ReleaseNamespace, "release-namespace", "", "namespace of the releases, can be a template (required for --scope Cluster)")
	flags.BoolVar(&allow, "allow", false, "allow what the chart needs outside the namespace of its releases (=false: add without)")
	flags.BoolVar(&add.Force, "force", false, "overwrite files of the copy that you have edited")
	flags.BoolVar(&add.ReplaceChart, "replace-chart", false, "replace the chart of an existing kind by another one")
	finish.dryRunFlag(cmd)
	analysis.add(cmd)
	return cmd
}

// printAdded prints the name of the kind's resource and, for a dry run, its entry and the
// diffs of refused changes.
func printAdded(cmd *cobra.Command, plan *scaffold.Plan, watches string, dryRun bool) error {
	text := fmt.Sprintf("\nresource: %s\n", plan.Resource)
	if dryRun {
		if err := printDiffs(cmd, plan); err != nil {
			return err
		}
		text += fmt.Sprintf("\n%s:\n  %s\n", watches, strings.ReplaceAll(strings.TrimSpace(plan.Entry), "\n", "\n  "))
	}
	_, err := io.WriteString(cmd.OutOrStdout(), text)
	return err
}
