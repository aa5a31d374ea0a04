package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
	"github.com/chartwright/chartwright/internal/plugin"
)

// migrateFlags are those of the command migrate.
type migrateFlags struct {
	live       bool
	namespaces []string
	output     string
}

func newMigrate() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate DIR",
		Short: "Tell what moving an operator-sdk Helm project over takes",
		Long: `Read a project of the operator-sdk's Helm operator, with its charts, and tell
what would break, what is to be done, what changes and what works as it is, with
the lines to write or to run where that is mechanical.

With --live, also look at the custom resources in the cluster of $KUBECONFIG:
which of their fields the CRD that "chartwright crd" makes would drop or refuse,
how their releases are taken over, and, by dry run, what server-side apply says
of the objects that they render.

Nothing is changed, neither files nor the cluster. The exit code is 1 where
something would break, or could not be looked at.`,
		Example: `  chartwright migrate .
  chartwright migrate . --live --namespace team-a`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.namespaces) > 0 && !f.live {
				return errors.New("--namespace says where --live looks: expected --live, too")
			}
			return migrateProject(cmd, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "also look at the cluster of $KUBECONFIG, by reads and dry runs")
	flags.StringSliceVarP(&f.namespaces, "namespace", "n", nil, "namespaces that --live looks at (default all)")
	outputFlag(cmd, &f.output)
	return cmd
}

func migrateProject(cmd *cobra.Command, dir string, f migrateFlags) error {
	project, err := migrate.Read(dir, expandWith)
	if err != nil {
		return err
	}
	run := newRun()
	findings, err := project.Findings(migrate.Options{
		Flags: func(name string) bool { return run.Flags().Lookup(name) != nil },
		Live:  f.live,
	})
	if err != nil {
		return err
	}
	if f.live {
		kubeconfig, err := config.GetConfig()
		if err != nil {
			return fmt.Errorf("find the cluster by $KUBECONFIG or ~/.kube/config: %w", err)
		}
		// The limits of kubectl: one user's requests need no throttling.
		kubeconfig.QPS, kubeconfig.Burst = 50, 300
		more, err := project.LiveFindings(cmd.Context(), kubeconfig, f.namespaces)
		if err != nil {
			return err
		}
		findings = append(findings, more...)
	}
	findings = migrate.Sort(findings)
	if f.output != "" {
		err = plugin.Print(cmd.OutOrStdout(), f.output, findings)
	} else {
		err = migrate.Text(cmd.OutOrStdout(), findings)
	}
	return errors.Join(err, migrate.Blockers(findings))
}

// expandWith sets the variables of the manager's container in this process,
// which expands overrideValues as the operator's does. What is set here already
// counts.
func expandWith(environment map[string]string) error {
	for name, value := range environment {
		if _, set := os.LookupEnv(name); set {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}
