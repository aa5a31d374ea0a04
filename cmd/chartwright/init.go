package main

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newInit() *cobra.Command {
	var project scaffold.Init
	var chart string
	var add scaffold.Add
	var fetch fetchFlags
	var allow bool
	var finish planFlags
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create an operator project",
		Long: `Create an operator project: a folder with watches.yaml, charts/, config/ for
kustomize, a Makefile, a Dockerfile and a CI example, without code. Then add kinds
with 'chartwright add', or the first kind at once with --chart. Existing files are not
overwritten. 'chartwright add --help' describes CHART, and 'chartwright update --help'
lists more flags to fetch charts.`,
		Example: `  chartwright init shop --domain example.com
  cd shop
  chartwright add ../web --group shop --version v1alpha1

  chartwright init podinfo --domain example.com --chart oci://ghcr.io/stefanprodan/charts/podinfo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			project.Dir = args[0]
			plan, err := project.Plan()
			if err == nil && chart != "" {
				if cmd.Flags().Changed("allow") {
					add.Allow = &allow
				}
				if err = fetch.resolve(cmd, chart, &add); err == nil {
					err = project.Add(plan, add)
				}
			}
			if err != nil {
				return err
			}
			return finish.run(cmd, plan)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&project.Name, "name", "", "name of the operator, and prefix of its resources (default: name of the folder)")
	flags.StringVar(&project.Domain, "domain", "", "domain of the API groups, appended by 'add --group' (default: none)")
	flags.StringVar(&project.Image, "image", "chartwright:"+api.BuildInfo().Version, "Chartwright image, the base of the project's image")
	flags.StringVar(&chart, "chart", "", "CHART of the first kind (default: no kind)")
	flags.StringVar(&add.Group, "group", "", "API group of the kind; without a dot, the domain is appended (default: the domain)")
	flags.StringVar(&add.Version, "version", "", "API version of the kind (default v1alpha1)")
	flags.StringVar(&add.Kind, "kind", "", "name of the kind (default: name of the chart in CamelCase)")
	flags.BoolVar(&allow, "allow", false, "allow what the chart needs outside the namespace of its releases, or not")
	fetch.addRepo(cmd)
	fetch.add(cmd, false)
	finish.dryRunFlag(cmd)
	return cmd
}
