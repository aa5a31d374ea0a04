package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ErrMissing means that a test that needs an API server is skipped.
var ErrMissing = errors.New("no API server")

// New returns an environment that is not started yet. It uses the programs in
// $KUBEBUILDER_ASSETS, or in bin/kube of this repository. The error is ErrMissing in
// -short, and if bin/kube has no programs. If $KUBEBUILDER_ASSETS has none, the tests must
// fail: CI sets the variable.
func New() (*envtest.Environment, error) {
	if testing.Short() {
		return nil, fmt.Errorf("%w: it takes a few seconds to start: not in -short", ErrMissing)
	}
	assets, given := os.LookupEnv("KUBEBUILDER_ASSETS")
	if !given {
		root, err := repository()
		if err != nil {
			return nil, err
		}
		assets = filepath.Join(root, "bin", "kube")
	}
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); given && err != nil {
		return nil, fmt.Errorf("KUBEBUILDER_ASSETS: %w", err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w: run 'make cluster-binaries'", ErrMissing, err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets}
	env.ControlPlane.Etcd = &envtest.Etcd{}
	// Tests need no durable storage.
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	return env, nil
}

// Start starts an environment for one test, and stops it afterwards. It skips the test if
// the error of New is ErrMissing.
func Start(t testing.TB) *envtest.Environment {
	t.Helper()
	env, err := New()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// repository returns the root of the repository: the closest parent folder of the test
// with cmd/chartwright. A go.mod does not identify the root, because test/ has one too.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "chartwright")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no folder cmd/chartwright above the test")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
