package plugin

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/api"
)

// WithVersion adds the command version and the flag --version to a root command.
// output is the value of its flag -o, or nil if only version has that flag.
func WithVersion(root *cobra.Command, output *string) {
	info, unknown := api.BuildInfo(), "unknown"
	commit := cmp.Or(info.Commit, unknown)
	if info.Date != "" {
		// Release builds do not record the date.
		commit += " of " + info.Date
	}
	line := fmt.Sprintf("chartwright %s (commit %s, %s, %s, Helm %s, Kubernetes client %s)\n", info.Version,
		commit, info.Go, info.Platform, cmp.Or(info.Helm, unknown), cmp.Or(info.Kubernetes, unknown))
	root.Version = info.Version
	root.SetVersionTemplate(line)
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print version information",
		Long:              "Print the versions of the program and of its libraries, without a cluster.",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	if output == nil {
		output = new(string)
		OutputFlag(cmd, output)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *output == formatJSON || *output == formatYAML {
			return Print(cmd.OutOrStdout(), *output, info)
		}
		_, err := fmt.Fprint(cmd.OutOrStdout(), line)
		return err
	}
	root.AddCommand(cmd)
	cmd.Example = example(cmd.CommandPath(), cmd.CommandPath()+" -o json")
}
