package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

// done says of each file what has become of it.
var done = map[scaffold.Op]string{
	scaffold.OpCreate: "created", scaffold.OpUpdate: "updated", scaffold.OpRemove: "removed", scaffold.OpKeep: "unchanged",
}

// printPlan prints what becomes of files, in the words of one who has done it,
// or is about to.
func printPlan(out io.Writer, files []scaffold.File, words func(scaffold.Op) string) error {
	for _, file := range files {
		if _, err := fmt.Fprintf(out, "%-9s %s\n", words(file.Op), file.Path); err != nil {
			return err
		}
	}
	return nil
}

// carryOut writes the files of a plan and says which have changed. Notes go to
// standard error.
func carryOut(cmd *cobra.Command, plan *scaffold.Plan) error {
	if err := plan.Write(); err != nil {
		return err
	}
	printNotes(cmd, plan)
	stale := plan.Stale()
	if len(stale) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "everything is up to date")
		return err
	}
	return printPlan(cmd.OutOrStdout(), stale, func(op scaffold.Op) string { return done[op] })
}

// announce says what would become of all files of a plan.
func announce(cmd *cobra.Command, plan *scaffold.Plan) error {
	printNotes(cmd, plan)
	return printPlan(cmd.OutOrStdout(), plan.Files(), func(op scaffold.Op) string { return string(op) })
}

func printNotes(cmd *cobra.Command, plan *scaffold.Plan) {
	for _, note := range plan.Notes {
		cmd.PrintErrf("Note: %s\n", note)
	}
}

// projectFlags are those of the commands that work in a project's folder.
func projectFlags(cmd *cobra.Command, project *scaffold.Project) {
	cmd.Flags().StringVar(&project.Watches, "watches-file", "watches.yaml", "watches file of the project; chart paths are relative to it")
	cmd.Flags().StringVar(&project.Config, "config-dir", "config", "folder of the project's manifests")
}
