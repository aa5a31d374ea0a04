package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
)

func newBundle() *cobra.Command {
	var project scaffold.Project
	var options bundle.Options
	var folder, createdAt string
	var finish planFlags
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Make a bundle for the Operator Lifecycle Manager",
		Long: `Make a bundle, which the Operator Lifecycle Manager (OLM) installs the operator
from, of config/manifests and of the charts:

  manifests/   the ClusterServiceVersion: the one of config/manifests/bases with
               the deployment, rights, and of each kind examples and descriptors;
               the CustomResourceDefinitions; people's roles
  metadata/    annotations, for catalogs
  tests/       the configuration of the scorecard
  bundle.Dockerfile, beside the folder, makes an image of it

What OLM would refuse is told instead. No cluster is asked.`,
		Example: `  chartwright bundle --version 1.2.3 --image registry.example.com/shop:v1.2.3`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if createdAt != "" {
				var err error
				if options.CreatedAt, err = time.Parse(time.RFC3339, createdAt); err != nil {
					return fmt.Errorf("--created-at %s: expected a time such as 2026-01-31T12:00:00Z", createdAt)
				}
			}
			plan, err := project.Bundle(cmd.Context(), folder, options)
			if err != nil {
				return err
			}
			return finish.run(cmd, plan)
		},
	}
	projectFlags(cmd, &project)
	flags := cmd.Flags()
	flags.StringVar(&folder, "output-dir", "bundle", "folder of the bundle")
	flags.StringVar(&options.Version, "version", "", "version of the operator, such as 1.2.3")
	flags.StringVar(&options.Image, "image", "", "the operator's image, in the place of "+bundle.Placeholder)
	flags.StringSliceVar(&options.Channels, "channels", []string{"stable"}, "channels of the catalog that the bundle is for")
	flags.StringVar(&options.DefaultChannel, "default-channel", "", "channel that people get who name none (default: the first of --channels)")
	flags.StringVar(&options.Replaces, "replaces", "", "version that this one is the upgrade of, for catalogs that learn it from bundles")
	flags.StringVar(&createdAt, "created-at", "", "when the version was made, such as 2026-01-31T12:00:00Z, to be noted (default: not noted)")
	flags.BoolVar(&finish.check, "check", false, "write nothing; fail if a file is missing or not up to date")
	flags.BoolVar(&finish.dryRun, "dry-run", false, "show the files, and write nothing")
	flags.BoolVar(&finish.strict, "strict", false, "fail if a note is of what has to be seen to, such as what was left out")
	// Only a flag that is not there is an error.
	_ = cmd.MarkFlagRequired("version")
	return cmd
}
