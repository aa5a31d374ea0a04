package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plugin"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which build this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := api.BuildInfo()
			if output != "" {
				return plugin.Print(cmd.OutOrStdout(), output, info)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "chartwright %s (commit %s of %s, %s, %s, Helm %s, Kubernetes client %s)\n",
				info.Version, orUnknown(info.Commit), orUnknown(info.Date), info.Go, info.Platform, orUnknown(info.Helm), orUnknown(info.Kubernetes))
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func orUnknown(text string) string { return cmp.Or(text, "unknown") }
