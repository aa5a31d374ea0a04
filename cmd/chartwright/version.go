package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which build this is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			info := api.BuildInfo()
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(info)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "chartwright %s (commit %s of %s, %s, %s, Helm %s, Kubernetes client %s)\n",
				info.Version, orUnknown(info.Commit), orUnknown(info.Date), info.Go, info.Platform, orUnknown(info.Helm), orUnknown(info.Kubernetes))
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json for machines")
	return cmd
}

func orUnknown(text string) string { return cmp.Or(text, "unknown") }
