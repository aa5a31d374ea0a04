package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// ErrMissing means that the programs of the API server are missing. Tests skip then.
var ErrMissing = errors.New("no kube-apiserver: run 'make cluster-binaries', or name the folder in KUBEBUILDER_ASSETS")

// New returns an environment that is not started yet. It uses the programs in
// $KUBEBUILDER_ASSETS, or in bin/kube of this repository. Without programs, the error is
// ErrMissing.
func New() (*envtest.Environment, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		root, err := repository()
		if err != nil {
			return nil, err
		}
		assets = filepath.Join(root, "bin", "kube")
	}
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: assets}
	env.ControlPlane.Etcd = &envtest.Etcd{}
	// Tests need no durable storage.
	env.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true")
	return env, nil
}

// Start starts an environment for one test, and stops it afterwards. It skips the test if
// the programs are missing, and in -short.
func Start(t testing.TB) *envtest.Environment {
	t.Helper()
	if testing.Short() {
		t.Skip("an API server takes a few seconds to start: not in -short")
	}
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
