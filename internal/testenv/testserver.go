package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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

// shared is the environment of Shared.
var shared struct {
	sync.Once
	env *envtest.Environment
	err error
}

// Shared returns an environment that all tests of a package share. The first call starts it,
// and Main stops it. It skips the test if the error of New is ErrMissing.
func Shared(t testing.TB) *envtest.Environment {
	t.Helper()
	shared.Do(func() {
		if shared.env, shared.err = New(); shared.err != nil {
			return
		}
		if _, shared.err = shared.env.Start(); shared.err == nil {
			shared.env.Config.QPS = -1
		}
	})
	if errors.Is(shared.err, ErrMissing) {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.env
}

// Main runs the tests of a package, stops the environment of Shared, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if shared.env != nil {
		if err := shared.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
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
