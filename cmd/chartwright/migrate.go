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

// migrateFlags are the flags of migrate.
type migrateFlags struct {
	live       bool
	namespaces []string
	output     string
}

func newMigrate() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate DIR",
		Short: "Report how to migrate an operator-sdk Helm project",
		Long: `Report how to migrate an operator-sdk Helm project: what would break, what you must
do, what changes, and what works unchanged. The report contains the lines to add and
the commands to run.

With --live, also check the custom resources in the cluster of $KUBECONFIG: which
fields the generated CRD would drop or reject, how releases are adopted, and, with a
dry run, whether the rendered objects can be applied.

Neither files nor the cluster are changed. The exit code is 1 if something would
break or could not be checked.`,
		Example: `  chartwright migrate .
  chartwright migrate . --live --namespace team-a`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.namespaces) > 0 && !f.live {
				return errors.New("--namespace requires --live")
			}
			return migrateProject(cmd, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.live, "live", false, "also check the cluster of $KUBECONFIG, only with reads and dry runs")
	flags.StringSliceVarP(&f.namespaces, "namespace", "n", nil, "namespaces for --live (default: all)")
	plugin.OutputFlag(cmd, &f.output)
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
			return fmt.Errorf("connect by $KUBECONFIG or ~/.kube/config: %w", err)
		}
		// The limits of kubectl.
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

// expandWith sets the environment variables of the manager's container, so that
// overrideValues are expanded as in the operator. Variables that are already set keep
// their values.
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
