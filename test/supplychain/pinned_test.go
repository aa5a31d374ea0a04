package supplychain

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// matching returns the contents of the files of the repository whose paths match.
func matching(t *testing.T, pattern string) map[string]string {
	t.Helper()
	found, expression := map[string]string{}, regexp.MustCompile(pattern)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || name == ".git" || name == "dist"):
			return fs.SkipDir
		case entry.IsDir() || !expression.MatchString(name):
			return nil
		}
		data, err := os.ReadFile(path.Join(root, name))
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("no file matches %s", pattern)
	}
	return found
}

// TestDockerfiles_NeedNoBaseImage: a tag of a base image can be moved to other
// content. A project's image is made from Chartwright's, which its owner names.
func TestDockerfiles_NeedNoBaseImage(t *testing.T) {
	digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)
	for name, text := range matching(t, `(^|/)Dockerfile$`) {
		if strings.Contains(name, "/testdata/") {
			continue
		}
		for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if len(words) < 2 || words[0] != "FROM" {
				continue
			}
			image := words[len(words)-1]
			if image != "scratch" && !digest.MatchString(image) && (name == "Dockerfile" || image != "${CHARTWRIGHT}") {
				t.Errorf("%s: FROM %s: want scratch, or an image with a digest", name, image)
			}
		}
	}
}

// TestWorkflows_ArePinnedAndReadOnly: an action is pinned by the digest of its
// commit, and the token of a workflow can only read the sources.
func TestWorkflows_ArePinnedAndReadOnly(t *testing.T) {
	pinned := regexp.MustCompile(`^[^@]+@[0-9a-f]{40}$`)
	for name, text := range matching(t, `(^|/)\.github/workflows/[^/]+\.ya?ml$`) {
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []struct {
					Uses string
					With map[string]any
				}
			}
		}
		if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(map[string]string{"contents": "read"}, workflow.Permissions); diff != "" {
			t.Errorf("%s: permissions (-want +got):\n%s", name, diff)
		}
		for id, job := range workflow.Jobs {
			if job.Permissions != nil {
				t.Errorf("%s: job %s has permissions of its own: %v", name, id, job.Permissions)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: uses %s: want the digest of a commit", name, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && fmt.Sprint(step.With["persist-credentials"]) != "false" {
					t.Errorf("%s: %s keeps its token in the checkout", name, step.Uses)
				}
			}
		}
	}
}

// TestRelease_BuildsAreReproducible: "make verify-reproducible" compares the bytes
// of two builds, which takes minutes. This test checks the settings it relies on.
func TestRelease_BuildsAreReproducible(t *testing.T) {
	dryRun := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", "release-artifacts", "docker-build", "VERSION=v9.9.9", "COMMIT=c0ffee", "PLATFORMS=linux/amd64 linux/arm64")
	dryRun.Dir = root
	printed, err := dryRun.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	modules, err := os.ReadFile(path.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	toolchain := regexp.MustCompile(`(?m)^go (1\.\d+\.\d+)$`).FindSubmatch(modules)
	if toolchain == nil {
		t.Fatal("go.mod names no patch version of Go")
	}
	builds, boms := 0, 0
	for line := range strings.Lines(string(printed)) {
		switch {
		case strings.Contains(line, "go build") && strings.Contains(line, "./cmd/chartwright"):
			builds++
			for _, setting := range []string{
				"GOTOOLCHAIN=go" + string(toolchain[1]) + " ", "GOFLAGS=-trimpath ", "-buildvcs=false ", "api.Version=v9.9.9 ", "api.Commit=c0ffee'",
			} {
				if !strings.Contains(line, setting) {
					t.Errorf("no %s in %s", setting, line)
				}
			}
		case strings.Contains(line, "cyclonedx-gomod bin "):
			boms++
			if !strings.Contains(line, "-noserial ") || !strings.Contains(line, "-notimestamp ") {
				t.Errorf("the SBOM contains a time: %s", line)
			}
		}
	}
	if builds != 2 || boms != 2 {
		t.Errorf("%d binaries are built and %d SBOMs written, want 2 of each:\n%s", builds, boms, printed)
	}
	if !strings.Contains(string(printed), "sha256sum chartwright-*") {
		t.Errorf("no checksums are written:\n%s", printed)
	}
}
