package stubs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The scripts of all charts must pass shellcheck, if it is installed.
func TestScripts_PassShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	files, err := filepath.Glob(filepath.Join(chartDir, "..", "*", "files", "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "shellcheck", append([]string{"-x"}, files...)...).CombinedOutput() // #nosec G204 -- the chart's files
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
