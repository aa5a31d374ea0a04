package plugin

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestNamed(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/local/bin/kubectl-chartwright": true,
		"kubectl-chartwright.exe":            true,
		"./kubectl_complete-chartwright":     true,
		"/chartwright":                       false,
		"kubectl":                            false,
		"kubectl-chart":                      false,
		"/kubectl-chartwright/chartwright":   false,
	} {
		if Named(path) != want {
			t.Errorf("%s is the plugin: %v", path, !want)
		}
	}
}

// TestHelp: every verb says what it does, by the name that people call it, with
// an example, and completes what it takes.
func TestHelp(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if !strings.HasPrefix(cmd.CommandPath(), "kubectl chartwright") || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s: %q, %q", cmd.CommandPath(), cmd.Short, cmd.Long)
		}
		if cmd.Runnable() && (cmd.Example == "" || cmd.ValidArgsFunction == nil) {
			t.Errorf("%s has no example, or completes nothing", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 82 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	root := newRoot(genericiooptions.NewTestIOStreamsDiscard())
	if len(root.Commands()) < 9 {
		t.Errorf("there are %d verbs", len(root.Commands()))
	}
	look(root)
}

// TestRunTells: errors on standard error, and by the exit code.
func TestRunTells(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"kubectl-chartwright --help", 0, "kubectl chartwright [command]", ""},
		{"/bin/kubectl-chartwright stop", 1, "", "Error: unknown command \"stop\" for \"kubectl chartwright\"\n"},
		{"kubectl-chartwright pause -o xml", 1, "", "expected table, json or yaml"},
		{"kubectl_complete-chartwright pau", 0, "pause\t", "Completion ended"},
	} {
		streams, _, out, errs := genericiooptions.NewTestIOStreams()
		if code := Run(t.Context(), strings.Fields(test.args), streams); code != test.code {
			t.Errorf("%s: exit code %d, want %d", test.args, code, test.code)
		}
		if !strings.Contains(out.String(), test.out) || !strings.Contains(errs.String(), test.err) || test.err == "" && errs.Len() > 0 || test.out == "" && out.Len() > 0 {
			t.Errorf("%s: stdout %q, stderr %q", test.args, out, errs)
		}
	}
}
