package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newAdd() *cobra.Command {
	var project scaffold.Project
	var add scaffold.Add
	var finish planFlags
	cmd := &cobra.Command{
		Use:   "add [CHART]",
		Short: "Make a kind of a chart",
		Long: `Make a kind of a Helm chart, which is a folder or a .tgz: copy the chart to
charts/, bind it to the kind in watches.yaml, and generate what follows from
that: the CustomResourceDefinition, rights and a sample. A chart that is in
charts/ already is used where it is. --new starts a chart in place of CHART.

Run again, the chart is copied anew, what follows from it is generated anew, and
flags that are given change the entry in watches.yaml. All else stays: samples,
comments, and files of a chart's copy that CHART has not, save in the folders
that are rendered. The group and the version need not be given again.`,
		Example: `  chartwright add ../web --group shop.example.com --version v1alpha1
  chartwright add postgres-1.2.3.tgz --group db.example.com --version v1 --kind Database --short-name db
  chartwright add --new api --group shop.example.com --version v1alpha1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == (add.New != "") {
				return errors.New("say which chart to add, or by --new the name of one to start")
			}
			if len(args) == 1 {
				add.Chart = args[0]
			}
			plan, err := project.Add(add)
			if err != nil {
				return err
			}
			if err := finish.run(cmd, plan); err != nil || !finish.dryRun {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "\n%s:\n  %s\n", project.Watches, strings.ReplaceAll(strings.TrimSpace(plan.Entry), "\n", "\n  "))
			return err
		},
	}
	projectFlags(cmd, &project)
	flags := cmd.Flags()
	flags.StringVar(&add.New, "new", "", "name of a chart to start: a Deployment, a Service, a ServiceAccount and an Ingress")
	flags.StringVar(&add.Group, "group", "", "API group of the kind; without a dot it belongs to the project's domain")
	flags.StringVar(&add.Version, "version", "", "version of the kind, such as v1alpha1")
	flags.StringVar(&add.Kind, "kind", "", "the kind (default: the chart's name in CamelCase)")
	flags.StringVar(&add.Plural, "plural", "", "plural of the kind, where it is not the usual one")
	flags.StringSliceVar(&add.ShortNames, "short-name", nil, "short name for kubectl; may be given several times")
	flags.StringSliceVar(&add.Categories, "category", nil, "category for kubectl, such as all; may be given several times")
	flags.StringVar(&add.Scope, "scope", "", "Namespaced or Cluster (default Namespaced)")
	flags.StringVar(&add.ReleaseNamespace, "release-namespace", "", "namespace of the releases; needed for --scope Cluster, and may be a template such as {{ .spec.targetNamespace }}")
	flags.BoolVar(&finish.dryRun, "dry-run", false, "show the files and the entry of watches.yaml, and write nothing")
	return cmd
}
