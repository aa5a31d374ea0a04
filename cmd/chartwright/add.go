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
	var fetch fetchFlags
	var allow bool
	cmd := &cobra.Command{
		Use:   "add [CHART]",
		Short: "Add a kind for a chart",
		Long: `Add a kind for a Helm chart: copy the chart to charts/, add an entry to
watches.yaml, and generate the CRD, the RBAC rules and a sample. CHART is a folder,
a .tgz, the URL of a .tgz, oci://HOST/PATH[:VERSION|@DIGEST], REPOSITORY/NAME of
'helm repo add', or a name with --repo. A chart in charts/ is used in place. --new
creates a chart. 'chartwright update --help' lists more flags to fetch charts.

Run add again to update the copy and the generated files, and to change settings of
the kind with flags. Samples and your own files are not changed. Unsafe changes
require --allow, --force or --replace-chart; --dry-run lists them.`,
		Example: `  chartwright add ../web --group shop.example.com --version v1alpha1
  chartwright add --new api
  chartwright add oci://ghcr.io/stefanprodan/charts/podinfo --chart-version ^6
  chartwright add redis --repo https://charts.example.com --kind Cache`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (add.New != "") {
				return errors.New("expected either CHART or --new NAME")
			}
			if len(args) == 1 {
				if err := fetch.resolve(cmd, args[0], &add); err != nil {
					return err
				}
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
			if err := printAdded(cmd, plan, project.Watches, finish.dryRun); err != nil {
				return err
			}
			return finish.nextTargets(cmd, plan, project, "verify", "test", "kind", "run")
		},
	}
	projectFlags(cmd, &project)
	flags := cmd.Flags()
	flags.StringVar(&add.New, "new", "", "create a chart with this name (default: use CHART)")
	flags.StringVar(&add.Group, "group", "", "API group, or the part before the domain (default: the domain)")
	flags.StringVar(&add.Version, "version", "", "API version of the kind (default v1alpha1)")
	flags.StringVar(&add.Kind, "kind", "", "name of the kind (default: chart name in CamelCase)")
	flags.StringVar(&add.Plural, "plural", "", "plural of a new kind (default: as in kubebuilder)")
	flags.StringSliceVar(&add.ShortNames, "short-name", nil, "short names for kubectl (default: none)")
	flags.StringSliceVar(&add.Categories, "category", nil, "categories for kubectl, such as all (default: none)")
	plugin.ChoiceFlag(cmd, &add.Scope, "scope", "", "scope of the kind (default Namespaced)", "Namespaced", "Cluster")
	flags.StringVar(&add.ReleaseNamespace, "release-namespace", "", "namespace of the releases, or a template (required for --scope Cluster)")
	flags.BoolVar(&allow, "allow", false, "allow resources outside the namespace of a release; =false adds the kind without allowing them")
	flags.BoolVar(&add.Force, "force", false, "overwrite edited files in the copy of the chart")
	flags.BoolVar(&add.ReplaceChart, "replace-chart", false, "replace the chart of an existing kind")
	fetch.addRepo(cmd)
	fetch.add(cmd, false)
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
