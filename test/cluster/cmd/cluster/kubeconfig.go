package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/test/cluster/internal/local"
)

// kubeconfig returns the command `cluster kubeconfig`.
func kubeconfig(dir *string) *cobra.Command {
	var account, out string
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig for the admin or for a ServiceAccount",
		Args:  cobra.NoArgs,
		Example: `  cluster kubeconfig
  cluster kubeconfig --serviceaccount chartwright-system/chartwright --out operator.kubeconfig`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := filepath.Abs(*dir)
			if err != nil {
				return err
			}
			var raw []byte
			if account == "" {
				raw, err = local.Kubeconfig(folder)
			} else {
				raw, err = local.ServiceAccountKubeconfig(cmd.Context(), folder, account, lifetime)
			}
			if err != nil {
				return err
			}
			if out == "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s", raw)
				return err
			}
			return os.WriteFile(out, raw, 0o600)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&account, "serviceaccount", "", "ServiceAccount `NAMESPACE/NAME` (default: the admin)")
	flags.StringVar(&out, "out", "", "write to this `file` (default: standard output)")
	flags.DurationVar(&lifetime, "lifetime", 30*24*time.Hour, "validity of a ServiceAccount's token")
	return cmd
}
