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

func newGenerate() *cobra.Command {
	var project scaffold.Project
	var finish planFlags
	var analysis analysisFlags
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate the manifests of a project",
		Long: `Generate the manifests of a project in config/, from watches.yaml and the charts:

  crd/bases/                              the CustomResourceDefinitions
  rbac/role.yaml                          the RBAC rules of the operator
  rbac/*_{admin,editor,viewer}_role.yaml  roles for users of the kinds
  samples/                                a sample of each kind, if it is missing
  */kustomization.yaml                    the lists of these files

Generated files of removed kinds are deleted. Files without the header of generated
files are not changed.`,
		Example: `  chartwright generate
  chartwright generate --check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			analysis.project(cmd, &project)
			plan, err := project.Generate()
			if err != nil {
				return err
			}
			if err := finish.run(cmd, plan); err != nil {
				return err
			}
			return finish.nextTargets(cmd, plan, project, "verify", "install", "run")
		},
	}
	projectFlags(cmd, &project)
	finish.checkFlags(cmd)
	analysis.add(cmd)
	plugin.OutputFlag(cmd, &finish.output)
	return cmd
}

// planFlags are the flags of commands that write files.
type planFlags struct {
	check, dryRun, strict bool
	output                string
}

func (f *planFlags) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "list the files, and write nothing")
	plugin.OutputFlag(cmd, &f.output)
}

func (f *planFlags) checkFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing; fail if files are not up to date")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "fail on notes that require action")
}

// Words for the operations on files: for --dry-run, after writing, and for --check.
var (
	planned = map[scaffold.Op]string{
		scaffold.OpCreate: "create", scaffold.OpUpdate: "update", scaffold.OpRemove: "remove", scaffold.OpKeep: "keep",
	}
	written = map[scaffold.Op]string{scaffold.OpCreate: "created", scaffold.OpUpdate: "updated", scaffold.OpRemove: "removed"}
	stale   = map[scaffold.Op]string{
		scaffold.OpCreate: "missing", scaffold.OpUpdate: "outdated", scaffold.OpRemove: "of a removed kind",
	}
)

// run writes the files of a plan, or with --check or --dry-run checks or lists them.
// Notes go to standard error.
func (f planFlags) run(cmd *cobra.Command, plan *scaffold.Plan) error {
	if !f.check && !f.dryRun {
		if err := plan.Write(); err != nil {
			return errors.Join(printDiffs(cmd, plan), err)
		}
	}
	for _, note := range plan.Notes {
		cmd.PrintErrf("Note: %s\n", note)
	}
	for _, refusal := range plan.Refusals {
		cmd.PrintErrf("Refused: %s\n", refusal)
	}
	var err error
	switch changes := plan.Stale(); {
	case f.check && len(changes) > 0:
		return fmt.Errorf("run '%s':%s", cmd.CommandPath(), planText(changes, "\n  %[2]s: %[1]s", stale))
	case f.check:
	case f.output != "":
		err = plugin.Print(cmd.OutOrStdout(), f.output, planOutput{plan.Files(), plan.Notes, plan.Refusals, plan.Resource, plan.Entry, plan.Changes})
	case f.dryRun:
		_, err = io.WriteString(cmd.OutOrStdout(), planText(plan.Files(), "%-9s %s\n", planned))
	case len(changes) == 0:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "everything is up to date")
	default:
		_, err = io.WriteString(cmd.OutOrStdout(), planText(changes, "%-9s %s\n", written))
	}
	if err == nil && f.strict && plan.Unsettled {
		return errors.New("--strict: a note requires action, see above")
	}
	return err
}

// printDiffs prints the diffs of the files that a plan refuses to overwrite.
func printDiffs(cmd *cobra.Command, plan *scaffold.Plan) error {
	for _, refusal := range plan.Refusals {
		if _, err := io.WriteString(cmd.OutOrStdout(), refusal.Diff); err != nil {
			return err
		}
	}
	return nil
}

// planOutput is the output of commands that write files with -o json and yaml.
type planOutput struct {
	Files []scaffold.File `json:"files"`
	Notes []string        `json:"notes,omitempty"`
	// Refusals are the changes that require a flag.
	Refusals []scaffold.Refusal `json:"refusals,omitempty"`
	// Resource is the resource of the kind, for add.
	Resource string `json:"resource,omitempty"`
	// Entry is the entry of watches.yaml, for add.
	Entry string `json:"entry,omitempty"`
	// Changes are what an update of a chart changes.
	Changes *scaffold.Changes `json:"changes,omitempty"`
}

// planText formats a line for each file.
func planText(files []scaffold.File, format string, words map[scaffold.Op]string) string {
	var text strings.Builder
	for _, file := range files {
		fmt.Fprintf(&text, format, words[file.Op], file.Path)
	}
	return text.String()
}

// projectFlags adds the flags of commands on a project.
func projectFlags(cmd *cobra.Command, project *scaffold.Project) {
	cmd.Flags().StringVar(&project.Watches, "watches-file", "watches.yaml", "watches file of the project")
	cmd.Flags().StringVar(&project.Config, "config-dir", "config", "folder of the manifests")
}
