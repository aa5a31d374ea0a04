package supplychain

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
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

// TestDevcontainer_IsPinned: the image has the toolchain of go.mod, and a digest.
func TestDevcontainer_IsPinned(t *testing.T) {
	for name, text := range matching(t, `^\.devcontainer/devcontainer\.json$`) {
		var container struct{ Image string }
		if err := yaml.Unmarshal([]byte(text), &container); err != nil {
			t.Fatal(err)
		}
		if want := regexp.MustCompile(`^golang:` + toolchain(t) + `-[a-z]+@sha256:[0-9a-f]{64}$`); !want.MatchString(container.Image) {
			t.Errorf("%s: image %s, want %s", name, container.Image, want)
		}
	}
}

// TestWorkflows_ArePinnedWithMinimalPermissions: an action is pinned by the digest of
// its commit. The token of a workflow can read the sources, and only the job that
// publishes a release can do more.
func TestWorkflows_ArePinnedWithMinimalPermissions(t *testing.T) {
	pinned := regexp.MustCompile(`uses: (\./.*|[^@\s]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	publish := map[string]string{"contents": "write", "packages": "write", "id-token": "write"}
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
			if job.Permissions != nil && (name != ".github/workflows/release.yaml" || !cmp.Equal(publish, job.Permissions)) {
				t.Errorf("%s: job %s has permissions of its own: %v", name, id, job.Permissions)
			}
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && fmt.Sprint(step.With["persist-credentials"]) != "false" {
					t.Errorf("%s: %s keeps its token in the checkout", name, step.Uses)
				}
			}
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, "uses:") && !pinned.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s: %s: want the digest of a commit and its version in a comment", name, strings.TrimSpace(line))
			}
		}
	}
}

// TestWorkflows_TargetsExist: the Makefile has the targets that the workflows of this
// repository run.
func TestWorkflows_TargetsExist(t *testing.T) {
	command, found := regexp.MustCompile(`(?m)^\s*(?:- run: )?(?:sudo env (?:"[^"]*" |[A-Z]+=[a-z]+ )*)?make ([a-z0-9 -]+)`), 0
	for _, text := range matching(t, `^\.github/workflows/[^/]+\.yaml$`) {
		for _, targets := range command.FindAllStringSubmatch(text, -1) {
			found++
			run(t.Context(), t, "make", append([]string{"--dry-run"}, strings.Fields(targets[1])...)...)
		}
	}
	if found < 4 {
		t.Errorf("found only %d commands", found)
	}
}
