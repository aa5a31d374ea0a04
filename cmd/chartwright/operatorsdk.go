package main

import (
	"io"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator"
)

// operatorName is the environment variable with the name of the lease in early versions
// of the operator-sdk.
const operatorName = "OPERATOR_NAME"

// operatorSDKFlags adds flags of the operator-sdk's Helm operator that have no effect, so
// that its Deployments work unchanged.
func operatorSDKFlags(cmd *cobra.Command) {
	for name, why := range map[string]string{
		"suppress-override-values": "it has no effect: events never contain overridden values, only their names",
		"enable-http2":             "it has no effect: metrics are always served by HTTP/1.1",
	} {
		cmd.Flags().Bool(name, false, "")
		// This fails only if the flag does not exist.
		_ = cmd.Flags().MarkDeprecated(name, why)
	}
}

// runFirst moves the command run to the beginning of a command line. Deployments for the
// operator-sdk's Helm operator contain only flags, because its image needs no command.
// Their patches insert flags before the other arguments, where cobra would parse run as
// the value of the last flag. Other command lines are returned unchanged.
func runFirst(args []string) []string {
	cmd := newRun()
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	// The command itself prints warnings for deprecated flags.
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil || len(args) == 0 {
		return args
	}
	at := len(args) - flags.NArg()
	switch flags.Arg(0) {
	case "":
		return append([]string{cmd.Name()}, args...)
	case cmd.Name():
		return slices.Concat(args[at:at+1], args[:at], args[at+1:])
	default:
		return args
	}
}

// leaseByName sets the name of the lease to $OPERATOR_NAME unless a flag sets it. It is
// the lease of the operator-sdk's operator, so that the two never run at the same time.
func leaseByName(options *operator.Options, name string, logger logr.Logger) {
	if name == "" || options.LeaderElectionID != "" {
		return
	}
	options.LeaderElectionID = name
	logger.Info("lease name read from $OPERATOR_NAME; use --leader-election-id instead", "lease", name)
}

// logAllowsEverything logs the entries without an allow block, as written for the
// operator-sdk. It analyzes no chart: the probes of a pod do not wait for an analysis of all
// its charts.
func logAllowsEverything(kinds []catalog.Kind, logger logr.Logger) {
	var names []string
	for _, kind := range kinds {
		if kind.Allow.Everything {
			names = append(names, kind.GVK().GroupKind().String())
		}
	}
	if len(names) == 0 {
		return
	}
	logger.Info("entries of the operator-sdk without allow block: values can make their charts create objects in any namespace and of any cluster-scoped kind, "+
		"and read everything that the operator can read; chartwright lint prints the allow block that each chart needs", "kinds", names)
}
