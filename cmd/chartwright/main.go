// Command chartwright turns Helm charts into Kubernetes kinds.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRoot().Execute(); err != nil {
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
	root.AddCommand(newRun(), newInit(), newAdd(), newGenerate(), newCRD(), newLint(), newRBAC(), newRender(), newVersion())
	return root
}
