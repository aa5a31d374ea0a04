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

// TestDocsCLI: docs/cli.md has every command as its help shows it.
func TestDocsCLI(t *testing.T) {
	var want strings.Builder
	want.WriteString(`# Commands

<!-- written by make generate -->

What ` + "`--help`" + ` says of each command: of the program ` + "`chartwright`" + `, and of the same program as a [plugin of kubectl](kubectl.md).
`)
	writeCommand(&want, newRoot())
	writeCommand(&want, plugin.Command(genericiooptions.IOStreams{}))
	testenv.Whole(t, "cli.md", want.String())
}

// writeCommand writes a command, then those below it. Flags of all that is below
// stand with the command that has them.
func writeCommand(to *strings.Builder, cmd *cobra.Command) {
	// That every command has it stands in no list.
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
		fmt.Fprintf(to, "\nFor example:\n\n```sh\n%s\n```\n", strings.TrimRight(outdent(cmd.Example), "\n"))
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

// outdent takes away what indents examples in the help.
func outdent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
