package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

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
		Use:   "init [DIR]",
		Short: "Create an operator project",
		Long: `Create an operator project: a folder with watches.yaml, charts/, config/ for
kustomize, a Makefile, a Dockerfile and a CI example, without code. Without DIR, the
current folder must be empty, except for hidden files. Existing files are not
overwritten.

Then add kinds with 'chartwright add', or the first kind at once with --chart.
'chartwright add --help' describes CHART, and 'chartwright update --help' lists more
flags to fetch charts.`,
		Example: `  chartwright init shop --domain example.com
  cd shop
  chartwright add ../web --group shop --version v1alpha1

  chartwright init podinfo --domain example.com --chart oci://ghcr.io/stefanprodan/charts/podinfo`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if project.Dir, err = projectFolder(args); err != nil {
				return err
			}
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
			if err := finish.run(cmd, plan); err != nil {
				return err
			}
			return nextOfInit(cmd, finish, plan, project, chart != "")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&project.Name, "name", "", "name of the operator, and prefix of its resources (default: name of the folder)")
	flags.StringVar(&project.Domain, "domain", "", "domain of the API groups (default: none)")
	flags.StringVar(&project.Image, "image", "", "base image (default: ghcr.io/chartwright/chartwright of this version)")
	flags.StringVar(&chart, "chart", "", "CHART of the first kind, as for add (default: no kind)")
	flags.StringVar(&add.Group, "group", "", "API group, or the part before the domain (default: the domain)")
	flags.StringVar(&add.Version, "version", "", "API version of the kind (default v1alpha1)")
	flags.StringVar(&add.Kind, "kind", "", "name of the kind (default: chart name in CamelCase)")
	flags.BoolVar(&allow, "allow", false, "allow resources outside the namespace of a release; =false adds the kind without allowing them")
	fetch.addRepo(cmd)
	fetch.add(cmd, false)
	finish.dryRunFlag(cmd)
	return cmd
}

// projectFolder returns the folder of a new project: the argument or, without one, the
// current folder if it is empty.
func projectFolder(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			return "", errors.New("the current folder is not empty: to create the project here, run 'chartwright init .'; to create it in a new folder, name the folder")
		}
	}
	return ".", nil
}

// nextOfInit prints the next steps in a new project.
func nextOfInit(cmd *cobra.Command, finish planFlags, plan *scaffold.Plan, project scaffold.Init, hasKind bool) error {
	var steps []step
	if folder := filepath.Clean(project.Dir); folder != "." {
		steps = append(steps, step{"cd " + folder, "Go to the project."})
	}
	if !hasKind {
		finish.next(cmd, plan, append(steps, step{"chartwright add CHART", "Add a kind for a chart. --new NAME creates a chart."})...)
		return nil
	}
	targets, err := targetSteps(plan, project.Project(), ".", "verify", "test", "kind")
	if err == nil {
		finish.next(cmd, plan, append(steps, targets...)...)
	}
	return err
}
