package main

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newRemove() *cobra.Command {
	var project scaffold.Project
	var remove scaffold.Remove
	var finish planFlags
	var analysis analysisFlags
	cmd := &cobra.Command{
		Use:   "remove KIND",
		Short: "Remove a kind from the project",
		Long: `Remove a kind from the project: its entry in watches.yaml, its CRD, its roles, its
sample, and the copy of its chart, unless another kind uses the chart. A sample or a
copy that you have edited is kept, unless you set --force.

The cluster does not change. Notes list what to delete there, and when.`,
		Example: `  chartwright remove Web
  chartwright remove Web.shop.example.com --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			remove.Kind = args[0]
			analysis.project(cmd, &project)
			plan, err := project.Remove(remove)
			if err != nil {
				return err
			}
			if err := finish.run(cmd, plan); err != nil {
				return err
			}
			return finish.nextTargets(cmd, plan, project, "verify")
		},
	}
	projectFlags(cmd, &project)
	cmd.Flags().BoolVar(&remove.Force, "force", false, "also remove an edited sample or chart")
	finish.dryRunFlag(cmd)
	analysis.add(cmd)
	return cmd
}
