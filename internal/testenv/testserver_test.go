package testenv

import (
	"errors"
	"testing"
)

// TestNew_RejectsMissingPrograms: CI names the folder of the programs, so tests must fail
// there if the programs are missing, and not be skipped.
func TestNew_RejectsMissingPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("in -short, all tests with an API server are skipped")
	}
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	if _, err := New(); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("got %v, want an error that fails a test", err)
	}
}
