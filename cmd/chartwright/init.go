package main

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newInit() *cobra.Command {
	var project scaffold.Init
	var finish planFlags
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make an operator project",
		Long: `Make an operator project: a folder with watches.yaml, charts/, config/ for
kustomize, a Makefile, a Dockerfile and an example for CI. There is no code in
it. 'chartwright add' then makes kinds of charts.

Files that are there are not written over.`,
		Example: `  chartwright init shop --domain example.com
  cd shop
  chartwright add ../web --group shop --version v1alpha1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			project.Dir = args[0]
			plan, err := project.Plan()
			if err != nil {
				return err
			}
			return finish.run(cmd, plan)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&project.Name, "name", "", "name of the operator, and prefix of what it is deployed as (default: that of the folder)")
	flags.StringVar(&project.Domain, "domain", "", "domain of the kinds' groups: 'add --group shop' then means shop.<domain>")
	flags.StringVar(&project.Image, "image", "chartwright:"+api.BuildInfo().Version, "Chartwright's own image, that the project's is made from")
	flags.BoolVar(&finish.dryRun, "dry-run", false, "show the files, and write nothing")
	return cmd
}
