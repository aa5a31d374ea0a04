package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newGenerate() *cobra.Command {
	var project scaffold.Project
	var finish planFlags
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
			plan, err := project.Generate()
			if err != nil {
				return err
			}
			return finish.run(cmd, plan)
		},
	}
	projectFlags(cmd, &project)
	cmd.Flags().BoolVar(&finish.check, "check", false, "write nothing; fail if a file is missing, not up to date, or of a kind that is gone")
	cmd.Flags().BoolVar(&finish.strict, "strict", false, "fail if a note is of what has to be seen to, such as rights that could not be derived; what Helm checks in the place of the API server is none")
	return cmd
}

// planFlags are the flags that select what a command does with its plan.
type planFlags struct{ check, dryRun, strict bool }

// Words for what becomes of a file, before, after, and instead of writing it.
var (
	planned = map[scaffold.Op]string{
		scaffold.OpCreate: "create", scaffold.OpUpdate: "update", scaffold.OpRemove: "remove", scaffold.OpKeep: "keep",
	}
	written = map[scaffold.Op]string{scaffold.OpCreate: "created", scaffold.OpUpdate: "updated", scaffold.OpRemove: "removed"}
	stale   = map[scaffold.Op]string{
		scaffold.OpCreate: "missing", scaffold.OpUpdate: "not up to date", scaffold.OpRemove: "of a kind that is gone",
	}
)

// run writes the files of a plan, or checks or prints them. Notes go to standard
// error.
func (f planFlags) run(cmd *cobra.Command, plan *scaffold.Plan) error {
	if !f.check && !f.dryRun {
		if err := plan.Write(); err != nil {
			return err
		}
	}
	for _, note := range plan.Notes {
		cmd.PrintErrf("Note: %s\n", note)
	}
	var err error
	switch changes := plan.Stale(); {
	case f.check && len(changes) > 0:
		return fmt.Errorf("run '%s':%s", cmd.CommandPath(), planText(changes, "\n  %[2]s: %[1]s", stale))
	case f.check:
	case f.dryRun:
		_, err = io.WriteString(cmd.OutOrStdout(), planText(plan.Files(), "%-9s %s\n", planned))
	case len(changes) == 0:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "everything is up to date")
	default:
		_, err = io.WriteString(cmd.OutOrStdout(), planText(changes, "%-9s %s\n", written))
	}
	if err == nil && f.strict && plan.Unsettled {
		return errors.New("--strict: a note is of what has to be seen to, see above")
	}
	return err
}

// planText formats the files of a plan, each by its word and path.
func planText(files []scaffold.File, format string, words map[scaffold.Op]string) string {
	var text strings.Builder
	for _, file := range files {
		fmt.Fprintf(&text, format, words[file.Op], file.Path)
	}
	return text.String()
}

// projectFlags adds the flags of commands that work in a project's folder.
func projectFlags(cmd *cobra.Command, project *scaffold.Project) {
	cmd.Flags().StringVar(&project.Watches, "watches-file", "watches.yaml", "watches file of the project; chart paths are relative to it")
	cmd.Flags().StringVar(&project.Config, "config-dir", "config", "folder of the project's manifests")
}
