package stubs

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// kills are runs that are killed at each call and repeated.
var kills = []struct {
	run
	// safe reports whether the state after the kill is allowed.
	safe func(read func(file string) string) bool
}{
	{run: run{
		name: "a change of the major version", script: "prepare.sh", files: files("home/data/PG_VERSION", "16\n", "home/data/upgrade", "17 upgrade/16-17-x\n", "home/data/base", "x"),
		leaves: files("home/data/PG_VERSION", "17\n", "home/data/restore", "upgrade/16-17-x\n", "home/data/access", "closed\n", "home/data/predecessors", "77\n", "home/old/base", "x"),
	}},
	{run: run{
		name: "a change back", script: "prepare.sh", files: files("home/data/PG_VERSION", "18\n", "home/data/restore", "upgrade/17-18-x\n", "home/old/PG_VERSION", "17\n"),
		leaves: files("home/data/PG_VERSION", "17\n", "home/old", "", "home/data.discarded", ""),
	}},
	{run: run{
		name: "a new copy in place of other data", script: "prepare.sh", env: standby, files: copied("home/data/base", "x"), answers: []answer{{When: "system_identifier", Say: "78\n"}},
		leaves: files("home/data/standby.signal", "\x00", "home/data/base", "", "home/aside-*/base", "x"),
	}},
	{
		run: run{
			name: "a restore into new data", script: "init.sh", env: []string{"RESTORE_FROM=latest"}, files: with(newData, backups),
			leaves: files("peer-0/fresh", "\n", "peer-0/access", "open\n", "backups/identity", "first\n"),
		},
		safe: func(read func(string) string) bool {
			return read("peer-0/access") == "closed" || read("peer-0/fresh") == ""
		},
	},
	{
		run: run{name: "a restore of an upgrade", script: "init.sh", files: with(dump, backups), leaves: files("peer-0/restore", "done\n", "peer-0/access", "open\n")},
		safe: func(read func(string) string) bool {
			return read("peer-0/access") == "closed" || !strings.HasPrefix(read("peer-0/restore"), "upgrade/")
		},
	},
	{
		run: run{
			name: "a final backup", script: "backup.sh", args: []string{"final"}, files: files("backups/identity", "first\n"),
			leaves: files("peer-0/access", "locked\n", "backups/identity", ""),
		},
		safe: func(read func(string) string) bool {
			return read("backups/identity") == "first" || read("peer-0/access") == "locked"
		},
	},
	{
		run: run{name: "an upgrade", script: "upgrade.sh", answers: []answer{serverOf16}, leaves: files("peer-0/access", "locked\n")},
		safe: func(read func(string) string) bool {
			return read("peer-0/access") == "locked" || read("peer-0/upgrade") == ""
		},
	},
	{
		run: run{name: "a switch", script: "switch.sh", env: to1, files: files("peer-0/role", "f\n", "peer-1/role", "t\n", "peer-2/role", "t\n"), leaves: files("peer-0/role", "t\n", "peer-1/role", "f\n")},
		safe: func(read func(string) string) bool {
			return read("peer-0/role") != "f" || read("peer-1/role") != "f"
		},
	},
}

// Every script can be killed at any call and run again.
func TestScripts_Killed(t *testing.T) {
	for _, k := range kills {
		t.Run(k.script+"/"+k.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; k.killedAt(t, at, k.safe); at++ {
				if t.Failed() {
					return
				}
			}
		})
	}
}

// killedAt kills a script at a call and runs it again. It returns false if the
// script ended before.
func (r run) killedAt(t *testing.T, at int, safe func(func(string) string) bool) bool {
	s := newStubs(t, r.script, r.answers...)
	for path, text := range r.files {
		s.file(path, text)
	}
	self, err := os.Executable()
	s.must(err)
	for _, tool := range tools {
		s.must(os.Symlink(self, s.at("bin/"+tool)))
	}
	s.env = append(s.env, r.env...)
	env := s.env
	s.env = slices.Concat(env, []string{stubKillAt + "=" + strconv.Itoa(at)})
	out, err := s.run("sh", r.script, r.args...)
	killed := err != nil
	if killed && safe != nil && !safe(func(file string) string {
		text, _ := os.ReadFile(s.at(file))
		return strings.TrimSpace(string(text))
	}) {
		t.Errorf("killed at call %d, the state is unsafe:\n%s", at, out)
	}
	if killed {
		s.env = env
		if again, err := s.run("sh", r.script, r.args...); err != nil {
			t.Errorf("killed at call %d, the next run fails: %v\n%s\n%s", at, err, out, again)
		}
	}
	for path, want := range r.leaves {
		s.leaves(path, want)
	}
	if t.Failed() {
		t.Logf("killed at call %d:\n%s", at, out)
	}
	return killed
}
