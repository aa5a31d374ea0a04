package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestImage_BuildOperator builds the image of the operator from a stub, and
// reads it back.
func TestImage_BuildOperator(t *testing.T) {
	o := options{out: t.TempDir()}
	binary := filepath.Join(t.TempDir(), "chartwright")
	if err := os.WriteFile(binary, []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(o.layers(), 0o755); err != nil {
		t.Fatal(err)
	}
	archive, err := operator("example.com/a:1", binary).build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	built, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := file.Config; c.User != "65532:65532" || c.WorkingDir != "/opt/chartwright" || c.Entrypoint[0] != "/chartwright" || c.Cmd[0] != "run" {
		t.Errorf("the configuration is %+v, want that of the Dockerfile", c)
	}
	if mode := entries(t, built)["chartwright"]; mode != 0o755 {
		t.Errorf("/chartwright has mode %o, want 755", mode)
	}

	again, err := operator("example.com/a:1", binary).build(t.Context(), o)
	if err != nil || again != archive {
		t.Errorf("the same image is built as %s (%v), want %s", again, err, archive)
	}
	if err := os.WriteFile(binary, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := operator("example.com/a:1", binary).build(t.Context(), o); err != nil || changed == archive {
		t.Errorf("the image of a changed program is %s (%v), want another file", changed, err)
	}
}

// entries returns the modes of all files in an image.
func entries(t *testing.T, image v1.Image) map[string]int64 {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	modes := map[string]int64{}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
}

func TestReference_RepositoryAndMajorVersion(t *testing.T) {
	for reference, want := range map[string][2]string{
		"docker.io/library/postgres:18":            {"docker.io/library/postgres", "18"},
		"docker.io/library/postgres:18.6":          {"docker.io/library/postgres", "18"},
		"localhost:5000/postgres:17.1-bookworm":    {"localhost:5000/postgres", "17"},
		"localhost:5000/postgres":                  {"localhost:5000/postgres", ""},
		"quay.io/a/b:v0.17.1@sha256:0123456789abc": {"quay.io/a/b", "v0"},
	} {
		if got := repository(reference); got != want[0] {
			t.Errorf("repository(%q) = %q, want %q", reference, got, want[0])
		}
		if got := majorVersion(reference); got != want[1] {
			t.Errorf("majorVersion(%q) = %q, want %q", reference, got, want[1])
		}
	}
}
