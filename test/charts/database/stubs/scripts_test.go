package stubs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// run is one run of a script: its environment and the expected result.
type run struct {
	name, script string
	args         []string
	env          []string
	// files exist before the run, relative to the pod's folder: see serve for
	// those of the servers.
	files   map[string]string
	answers []answer
	// fails: the script exits with an error. wantText are parts of its output.
	fails    bool
	wantText []string
	// calls are patterns of the expected calls in order; never are patterns that
	// no call may match: see matches.
	calls, never []string
	// leaves are patterns of files with their expected content: see leaves.
	leaves map[string]string
}

// down is psql's exit code if no server responds.
const down = 2

func TestScripts(t *testing.T) {
	for _, shell := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		for _, r := range slices.Concat(prepareRuns, podRuns, initRuns, backupRuns, upgradeRuns, switchRuns) {
			t.Run(shell+"/"+r.script+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				r.check(t, shell)
			})
		}
	}
}

func (r run) check(t *testing.T, shell string) {
	s := newStubs(t, r.script, r.answers...)
	s.env = append(s.env, r.env...)
	for path, text := range r.files {
		s.file(path, text)
	}
	out, err := s.run(shell, r.script, r.args...)
	if (err != nil) != r.fails {
		t.Errorf("the script ended with %v", err)
	}
	for _, wantText := range r.wantText {
		if !strings.Contains(out, wantText) {
			t.Errorf("the output does not contain %q", wantText)
		}
	}
	calls := s.calls()
	next := 0
	var text strings.Builder
	unexpected := map[string]bool{}
	for _, c := range calls {
		text.WriteString(c.String() + "\n")
		for _, never := range r.never {
			if matches(c.String(), never) {
				unexpected[never] = true
			}
		}
		for next < len(r.calls) && matches(c.String(), r.calls[next]) {
			next++
			if next < len(r.calls) && r.calls[next] == r.calls[next-1] {
				break
			}
		}
	}
	if next < len(r.calls) {
		t.Errorf("missing call, or wrong order: %q", r.calls[next])
	}
	for never := range unexpected {
		t.Errorf("unexpected call: %q", never)
	}
	for path, want := range r.leaves {
		s.leaves(path, want)
	}
	if t.Failed() {
		t.Logf("output:\n%s\ncalls:\n%s", out, text.String())
	}
}

// leaves checks the files that a pattern matches: "" means that none may exist,
// and a zero byte that the file must be empty.
func (s *stubs) leaves(pattern, want string) {
	s.t.Helper()
	found, err := filepath.Glob(s.at(pattern))
	s.must(err)
	if want == "" {
		if len(found) > 0 {
			s.t.Errorf("%s exists", found)
		}
		return
	}
	if len(found) != 1 {
		s.t.Errorf("%s matches %s, want one file", pattern, found)
		return
	}
	got, err := os.ReadFile(found[0])
	if err != nil || string(got) != strings.Trim(want, "\x00") {
		s.t.Errorf("%s contains %q, %v, want %q", found[0], got, err, want)
	}
}
