package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestFetchFlags_CheckLocalCharts: the flags for the version and the signature also count
// for charts on this machine.
func TestFetchFlags_CheckLocalCharts(t *testing.T) {
	folder := writeChart(t, filepath.Join(t.TempDir(), "box"), nil)
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	for name, test := range map[string]struct {
		flags fetchFlags
		want  string
	}{
		"no flags":      {fetchFlags{}, ""},
		"version":       {fetchFlags{version: "^1"}, ""},
		"other version": {fetchFlags{version: "2.0.0"}, "the chart has version 1.0.0, want 2.0.0"},
		"verify":        {fetchFlags{verify: true, keyring: "ring.gpg"}, "a folder has no signature"},
	} {
		_, err := test.flags.load(cmd, folder)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got error %v, want %q", name, err, test.want)
		}
	}
}
