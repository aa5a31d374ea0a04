package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/chartwright/chartwright/internal/plugin"
)

// commands returns all commands of both programs, except those that cobra adds.
func commands() (all []*cobra.Command) {
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		all = append(all, cmd)
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add(newRoot())
	add(plugin.Command(genericiooptions.NewTestIOStreamsDiscard()))
	return all
}

func TestHelp_FitsOneScreen(t *testing.T) {
	const maxLines, maxWidth = 46, 130
	for _, cmd := range commands() {
		var help bytes.Buffer
		cmd.SetOut(&help)
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(strings.Lines(help.String()))
		if len(lines) > maxLines {
			t.Errorf("%s: help has %d lines, want at most %d:\n%s", cmd.CommandPath(), len(lines), maxLines, help.String())
		}
		for _, line := range lines {
			if width := len([]rune(line)); width > maxWidth {
				t.Errorf("%s: line of %d characters, want at most %d: %s", cmd.CommandPath(), width, maxWidth, line)
			}
		}
	}
}

func TestHelp_IsImperativeWithExample(t *testing.T) {
	imperative := regexp.MustCompile(`^(Add|Apply|Approve|Check|Compare|Create|Find|Generate|List|Pause|Print|Release|Remove|Render|Report|Resume|Roll|Run|Show|Turn|Update)[ ,]`)
	for _, cmd := range commands() {
		if !imperative.MatchString(cmd.Short) || len(cmd.Short) > 60 || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: want a short sentence that starts with a verb, without a period: %q", cmd.CommandPath(), cmd.Short)
		}
		if !imperative.MatchString(cmd.Long) {
			t.Errorf("%s: the description does not start with a verb: %q", cmd.CommandPath(), cmd.Long)
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 87 {
				t.Errorf("%s: line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && !strings.HasPrefix(strings.TrimSpace(cmd.Example), cmd.Root().CommandPath()) {
			t.Errorf("%s: no example: %q", cmd.CommandPath(), cmd.Example)
		}
	}
}

// flagNames returns the names of the flags that the help of a command shows.
func flagNames(cmd *cobra.Command) (names []string) {
	for _, match := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`).FindAllStringSubmatch(cmd.NonInheritedFlags().FlagUsages(), -1) {
		names = append(names, match[1])
	}
	return names
}

func TestHelp_StatesDefaults(t *testing.T) {
	for _, cmd := range commands() {
		for _, name := range flagNames(cmd) {
			flag := cmd.Flag(name)
			// pflag prints defaults that are not empty, and the default of booleans is false.
			if flag.Value.Type() == "bool" || flag.DefValue != "" && flag.DefValue != "[]" {
				continue
			}
			if !strings.Contains(flag.Usage, "default") && !strings.Contains(flag.Usage, "required") {
				t.Errorf("%s: --%s states no default: %q", cmd.CommandPath(), name, flag.Usage)
			}
		}
	}
}

func TestCompletion_FlagsWithFixedValues(t *testing.T) {
	for _, cmd := range commands() {
		for _, name := range flagNames(cmd) {
			values := cmd.Flag(name).Value.Type()
			if !strings.Contains(values, "|") {
				continue
			}
			complete, exists := cmd.GetFlagCompletionFunc(name)
			if !exists {
				t.Errorf("%s: --%s has no completion", cmd.CommandPath(), name)
				continue
			}
			if words, _ := complete(cmd, nil, ""); strings.Join(words, "|") != values {
				t.Errorf("%s: --%s completes %v", cmd.CommandPath(), name, words)
			}
		}
	}
}
