package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/plugin"
	"github.com/chartwright/chartwright/internal/testenv"
)

// docs/reference/cli.md contains the help of all commands.
func TestDocsCLI(t *testing.T) {
	var want strings.Builder
	want.WriteString(`# Commands

<!-- written by make generate -->

The help of all commands of ` + "`chartwright`" + ` and of the [kubectl plugin](kubectl.md).
`)
	writeCommand(&want, newRoot())
	writeCommand(&want, plugin.Command(genericiooptions.IOStreams{}))
	testenv.Whole(t, "reference/cli.md", want.String())
}

// writeCommand writes the help of a command and its subcommands. Persistent flags are
// only written for the command that defines them.
func writeCommand(to *strings.Builder, cmd *cobra.Command) {
	// Omit the flag that every command has.
	cmd.InitDefaultHelpFlag()
	cmd.Flags().Lookup("help").Hidden = true
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(to, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(about))
	if cmd.Runnable() {
		fmt.Fprintf(to, "\n```sh\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(to, "\nExamples:\n\n```sh\n%s\n```\n", strings.TrimRight(outdent(cmd.Example), "\n"))
	}
	if flags := cmd.NonInheritedFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(to, "\n```text\n%s\n```\n", strings.TrimRight(flags, "\n"))
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			writeCommand(to, below)
		}
	}
}

// outdent removes the indentation of examples.
func outdent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
