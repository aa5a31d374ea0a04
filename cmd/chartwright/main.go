// Command chartwright turns Helm charts into Kubernetes kinds.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/plugin"
)

func main() {
	// The same program is kubectl's plugin, under the name that kubectl looks for.
	if plugin.Named(os.Args[0]) {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(plugin.Run(context.Background(), os.Args, streams))
	}
	root := newRoot()
	root.SetArgs(runFirst(os.Args[1:]))
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "chartwright",
		Short: "Turn Helm charts into Kubernetes kinds",
		Long: `Chartwright is an operator made of Helm charts. One entry in watches.yaml binds
a kind to a chart, and every custom resource of that kind becomes one Helm
release.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newInit(), newAdd(), newGenerate(), newBundle(), newCRD(), newLint(), newRBAC(), newRender(), newMigrate(), newVersion())
	return root
}

// outputFlag adds -o to a command that prints a text by default.
func outputFlag(cmd *cobra.Command, output *string) {
	plugin.ChoiceFlag(cmd, output, "output", "o", "print as json or yaml", "json", "yaml")
}
