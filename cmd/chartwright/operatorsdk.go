package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator"
)

// operatorName is the variable in which the operator-sdk's first years looked
// for the name of the lease.
const operatorName = "OPERATOR_NAME"

// operatorSDKFlags are flags of the operator-sdk's Helm operator that ask for
// what is so anyway. A Deployment that was written for it is taken as it is.
func operatorSDKFlags(cmd *cobra.Command) {
	for name, why := range map[string]string{
		"suppress-override-values": "it has no effect, for events name the values that are overridden and show none",
		"enable-http2":             "it has no effect, for metrics are served by HTTP/1.1 alone",
	} {
		cmd.Flags().Bool(name, false, "")
		// Only a flag that is not there is an error.
		_ = cmd.Flags().MarkDeprecated(name, why)
	}
}

// runFirst returns the command line of a Deployment that was written for the
// operator-sdk's Helm operator with the command run at its beginning. That
// operator's image runs by itself, so that there are flags alone; and patches
// insert flags before the arguments that are there, where cobra would take run
// for the value of the last. Other command lines are returned as they are.
func runFirst(args []string) []string {
	cmd := newRun()
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	// What is deprecated is told when the command is run.
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

// leaseByName has $OPERATOR_NAME name the lease where no flag does: that of the
// operator-sdk's operator, so that the two never act at the same time.
func leaseByName(options *operator.Options, name string, logger logr.Logger) {
	if name == "" || options.LeaderElectionID != "" {
		return
	}
	options.LeaderElectionID = name
	logger.Info("the lease is called as $OPERATOR_NAME says; use --leader-election-id", "lease", name)
}

// warnOfEverything tells, once a kind, of entries in which everything is allowed
// since they are written for the operator-sdk, and what an allow block would
// refuse of what their charts render.
func warnOfEverything(kinds []catalog.Kind, logger logr.Logger) {
	for _, kind := range kinds {
		if !kind.Allow.Everything {
			continue
		}
		logger.Info("the entry is written for the operator-sdk and has no allow block: the chart may make objects in any namespace and of any cluster-scoped kind, "+
			"and read what the operator may, wherever values lead it; add the block to say what it may",
			"kind", kind.GVK().GroupKind().String(), "entry", fmt.Sprintf("%s:%d", kind.File, kind.Line), "wouldBeRefused", wouldBeRefused(kind))
	}
}

// wouldBeRefused returns what the chart of a kind does that would be refused if
// its entry allowed nothing, as lines of an allow block.
func wouldBeRefused(kind catalog.Kind) []string {
	need, notes, err := scaffold.Allow(kind)
	if err != nil {
		// It is told when it is rendered for a resource.
		return []string{fmt.Sprintf("not known: %v", err)}
	}
	return append(scaffold.MissingAllow(kind.Allow, need), notes...)
}
