package plugin

import (
	"strings"
	"testing"

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
			t.Errorf("Named(%q) is %v", path, !want)
		}
	}
}

func TestRun_ErrorsAndExitCodes(t *testing.T) {
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
