// Command chartwright is an operator that turns Helm charts into Kubernetes kinds.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	// The image has no files, so no CA certificates for registries of charts. If the system
	// has its own, or $SSL_CERT_FILE names them, these are used instead.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/plugin"
)

func main() {
	// Under the name of the kubectl plugin, the same binary is the plugin.
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
		Long: `Turn Helm charts into Kubernetes kinds: an entry in watches.yaml connects a kind to
a chart, and each custom resource of the kind becomes one Helm release.`,
		Example: `  chartwright init shop --domain example.com
  chartwright run --watches-file watches.yaml`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newInit(), newAdd(), newUpdate(), newRemove(), newGenerate(), newBundle(), newCRD(), newLint(), newRBAC(), newRender(), newSchema(), newTry(), newMigrate())
	plugin.WithVersion(root, nil)
	return root
}

// printList prints objects as JSON, in a List.
func printList(cmd *cobra.Command, items any) error {
	return plugin.Print(cmd.OutOrStdout(), "json", map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}
