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
		Short: "Create a bundle for the Operator Lifecycle Manager",
		Long: `Create a bundle for the Operator Lifecycle Manager (OLM) from config/manifests and
the charts:

  manifests/         the ClusterServiceVersion, based on config/manifests/bases,
                     the CRDs, and the admin, editor and viewer roles
  metadata/          annotations for catalogs
  tests/             configuration of the scorecard
  bundle.Dockerfile  beside the folder: builds the bundle image

If OLM would reject the bundle, the command fails. No cluster is needed.`,
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
	flags.StringVar(&options.Version, "version", "", "version of the operator, such as 1.2.3 (required)")
	flags.StringVar(&options.Image, "image", "", "image of the operator, instead of "+bundle.Placeholder+" (required if config/ contains that)")
	flags.StringSliceVar(&options.Channels, "channels", []string{"stable"}, "channels of the catalog")
	flags.StringVar(&options.DefaultChannel, "default-channel", "", "default channel (default: the first)")
	flags.StringVar(&options.Replaces, "replaces", "", "previous version, which this version replaces (default: none)")
	flags.StringVar(&createdAt, "created-at", "", "creation time, such as 2026-01-31T12:00:00Z (default: none)")
	finish.checkFlags(cmd)
	finish.dryRunFlag(cmd)
	// This fails only if the flag does not exist.
	_ = cmd.MarkFlagRequired("version")
	return cmd
}
