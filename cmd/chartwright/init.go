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
		Short: "Create an operator project",
		Long: `Create an operator project: a folder with watches.yaml, charts/, config/ for
kustomize, a Makefile, a Dockerfile and a CI example, without code. Then add kinds
with 'chartwright add'. Existing files are not overwritten.`,
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
	flags.StringVar(&project.Name, "name", "", "name of the operator, and prefix of its resources (default: name of the folder)")
	flags.StringVar(&project.Domain, "domain", "", "domain of the API groups, appended by 'add --group' (default: none)")
	flags.StringVar(&project.Image, "image", "chartwright:"+api.BuildInfo().Version, "Chartwright image, the base of the project's image")
	finish.dryRunFlag(cmd)
	return cmd
}
