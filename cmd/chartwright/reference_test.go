package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/plugin"
	"github.com/chartwright/chartwright/internal/testenv"
)

// commonFrom is the least number of commands that share a common flag. The page describes
// common flags only once.
const commonFrom = 2

// rare are flags that few users need. The page only names them.
var rare = []string{
	"zap-devel", "zap-encoder", "zap-stacktrace-level", "zap-time-encoding",
	"metrics-cert-key", "metrics-cert-name", "leader-election-namespace",
	"ca-file", "cert-file", "key-file", "username", "created-at",
}

// TestDocsCLI checks that docs/reference/cli.md lists all commands with their flags.
func TestDocsCLI(t *testing.T) {
	roots := []*cobra.Command{newRoot(), plugin.Command(genericiooptions.IOStreams{})}
	r := reference{counts: map[string]int{}, common: map[string]*pflag.Flag{}}
	for _, root := range roots {
		walk(root, r.count)
	}
	shared := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, flag := range r.common {
		shared.AddFlag(flag)
	}
	var common, commands strings.Builder
	for _, root := range roots {
		walk(root, func(cmd *cobra.Command) { r.write(&commands, cmd) })
	}
	common.WriteString(`# Commands

<!-- written by make generate -->

` + "`chartwright`" + ` manages projects and runs the operator. [` + "`kubectl chartwright`" + `](kubectl.md) manages custom resources. ` + "`--help`" + ` shows details, examples and the other flags.

## Common flags

Several commands share these flags:

` + "```text\n" + usages(shared) + "```\n")
	testenv.Whole(t, "reference/cli.md", common.String()+commands.String())
}

// walk calls a function for a command and the visible commands below it.
func walk(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			walk(below, do)
		}
	}
}

// reference writes commands.
type reference struct {
	// counts is the number of commands by the description of a flag.
	counts map[string]int
	// common are the flags, by name, that are described only once.
	common map[string]*pflag.Flag
}

func describe(flag *pflag.Flag) string {
	return strings.Join([]string{flag.Name, flag.Shorthand, flag.Value.Type(), flag.Usage, flag.DefValue}, "|")
}

func (r reference) count(cmd *cobra.Command) {
	// Omit the flag that every command has.
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Hidden = true
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		r.counts[describe(flag)]++
		// Of flags with the same name, the most frequent one is common.
		count, before := r.counts[describe(flag)], r.common[flag.Name]
		if count >= commonFrom && (before == nil || r.counts[describe(before)] < count) {
			r.common[flag.Name] = flag
		}
	})
}

func (r reference) isCommon(flag *pflag.Flag) bool {
	common := r.common[flag.Name]
	return common != nil && describe(common) == describe(flag)
}

// write writes a command: its purpose, its usage and its flags. Persistent flags are only
// written for the command that defines them. Groups of commands are omitted.
func (r reference) write(to *strings.Builder, cmd *cobra.Command) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	var common, others []string
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		switch {
		case flag.Hidden:
		case slices.Contains(rare, flag.Name):
			others = append(others, "`--"+flag.Name+"`")
		case !r.isCommon(flag):
			own.AddFlag(flag)
		case flag.Shorthand != "":
			common = append(common, "`-"+flag.Shorthand+"`")
		default:
			common = append(common, "`--"+flag.Name+"`")
		}
	})
	if cmd.HasParent() && cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprintf(to, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
	var usage string
	if cmd.Runnable() {
		usage = strings.TrimSuffix(cmd.UseLine(), " [flags]") + "\n"
	}
	if flags := usages(own); flags != "" {
		if usage != "" {
			usage += "\n"
		}
		usage += flags
	}
	if usage != "" {
		fmt.Fprintf(to, "\n```text\n%s```\n", usage)
	}
	if len(common) > 0 {
		fmt.Fprintf(to, "\nCommon flags: %s\n", strings.Join(common, ", "))
	}
	if len(others) > 0 {
		fmt.Fprintf(to, "\nOther flags: %s\n", strings.Join(others, ", "))
	}
}

func usages(flags *pflag.FlagSet) string {
	return strings.ReplaceAll(flags.FlagUsages(), " (default: none)", "")
}
