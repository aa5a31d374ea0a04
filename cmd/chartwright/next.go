package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

// step is a command that a user can run next.
type step struct{ command, help string }

// targetSteps returns the named targets of the project's Makefile as steps, for a user in
// the given folder of the project. A project without these targets can at least check its
// charts.
func targetSteps(plan *scaffold.Plan, project scaffold.Project, folder string, names ...string) ([]step, error) {
	targets, err := project.Targets(plan, names...)
	if err != nil {
		return nil, err
	}
	run := "make "
	if folder != "." {
		run = "make -C " + folder + " "
	}
	steps := make([]step, 0, len(targets))
	for _, target := range targets {
		steps = append(steps, step{run + target.Name, target.Help})
	}
	if len(steps) == 0 {
		steps = []step{{"chartwright lint", "Check the charts."}}
	}
	return steps, nil
}

// next prints the next steps to standard error, like notes, if the command has written
// files. It prints none for programs, which read the output with -o.
func (f planFlags) next(cmd *cobra.Command, plan *scaffold.Plan, steps ...step) {
	if f.check || f.dryRun || f.output != "" || len(plan.Stale()) == 0 {
		return
	}
	width := 0
	for _, one := range steps {
		width = max(width, len(one.command))
	}
	cmd.PrintErrln("\nNext:")
	for _, one := range steps {
		cmd.PrintErrf("  %-*s  %s\n", width, one.command, one.help)
	}
}

// nextTargets prints targets of the project's Makefile as the next steps.
func (f planFlags) nextTargets(cmd *cobra.Command, plan *scaffold.Plan, project scaffold.Project, names ...string) error {
	steps, err := targetSteps(plan, project, filepath.Dir(project.Watches), names...)
	if err == nil {
		f.next(cmd, plan, steps...)
	}
	return err
}
