package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newGenerate() *cobra.Command {
	var project scaffold.Project
	var check, strict bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate what follows from watches.yaml and the charts",
		Long: `Generate what follows from watches.yaml and the charts, into config/:

  crd/bases/                            the CustomResourceDefinitions
  rbac/role.yaml                        the operator's rights
  rbac/*_{admin,editor,viewer}_role.yaml  people's rights to the kinds
  samples/                              a sample of each kind, where it is missing
  */kustomization.yaml                  lines that list these

Generated files of kinds that are gone are removed. A file that does not begin
with the line that generated files have is somebody's own, and stays.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(project.Watches); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s is not there: run the command in the folder of a project, as 'chartwright init' makes it, or name the file by --watches-file", project.Watches)
			}
			plan, err := project.Generate()
			if err != nil {
				return err
			}
			if check {
				printNotes(cmd, plan)
				err = upToDate(plan, "chartwright generate")
			} else {
				err = carryOut(cmd, plan)
			}
			if err == nil && strict && plan.Unsettled {
				err = errors.New("--strict: a note is of what has to be seen to, see above")
			}
			return err
		},
	}
	projectFlags(cmd, &project)
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; fail if a file is missing, not up to date, or of a kind that is gone")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail if a note is of what has to be seen to, such as rights that could not be derived; what Helm checks in the place of the API server is none")
	return cmd
}

// upToDate fails where the command would write something.
func upToDate(plan *scaffold.Plan, command string) error {
	stale := plan.Stale()
	if len(stale) == 0 {
		return nil
	}
	var lines strings.Builder
	for _, file := range stale {
		fmt.Fprintf(&lines, "\n  %s: %s", file.Path, map[scaffold.Op]string{
			scaffold.OpCreate: "missing", scaffold.OpUpdate: "not up to date", scaffold.OpRemove: "of a kind that is gone",
		}[file.Op])
	}
	return fmt.Errorf("run '%s':%s", command, lines.String())
}

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
