package database

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A switchover under load and back loses no acknowledged row, and the previous
// primary needs no new copy.
func TestPostgreSQL_Switchover(t *testing.T) {
	p := newPostgres(t)
	p.settings(0, 3)
	pods := []*pod{p.pod(0), p.pod(1), p.pod(2)}
	pods[0].configure()
	for _, standby := range pods[1:] {
		standby.start()
	}
	var total int64
	for _, to := range []int{1, 0} {
		from := 1 - to
		l := pods[from].startLoad()
		l.more(500)
		p.settings(to, 3)
		contains(t, p.mustJob("switch.sh", nil, "OLD_PRIMARY="+strconv.Itoa(from)), "accepts no connections", "is no longer the primary", "is the primary")
		total += l.end()
		pods[to].has(total)
		p.mustJob("init.sh", nil)
		p.sql(pods[to], "INSERT INTO load DEFAULT VALUES")
		total++
		// The previous primary and the other standby follow.
		for _, standby := range []*pod{pods[from], pods[2]} {
			standby.waitReady()
			standby.waitFor("SELECT count(*) >= "+pods[to].rows()+" FROM load", "t")
			standby.expect("SELECT pg_is_in_recovery()", "t")
		}
		if log := pods[from].log(); strings.Contains(log, "taking a copy") {
			t.Errorf("the previous primary took a new copy:\n%s", log)
		}
		contains(t, p.mustJob("switch.sh", nil), "nothing to do")
	}
}

// rows returns the number of rows of the load.
func (q *pod) rows() string {
	q.t.Helper()
	out, err := q.query("SELECT count(*) FROM load")
	if err != nil {
		q.t.Fatal(out)
	}
	return out
}

// A switch that cannot be completed leaves the primary as it was.
func TestPostgreSQL_SwitchoverIsRefused(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	refuses := func(want string, env ...string) {
		t.Helper()
		if out, err := p.job("switch.sh", nil, env...); err == nil || !strings.Contains(out, want) {
			t.Errorf("the switch is not refused with %q: %v\n%s", want, err, out)
		}
		p.sql(primary, "INSERT INTO kept VALUES (0)")
	}
	p.settings(1, 2)

	// The standby does not replay.
	if out, err := standby.queryAs("postgres", superuserPassword, "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(out)
	}
	p.sql(primary, "INSERT INTO kept VALUES (0)")
	refuses("did not replay the WAL of pod 0", "WAIT=2", "OLD_PRIMARY=0")
	if out, err := standby.queryAs("postgres", superuserPassword, "SELECT pg_wal_replay_resume()"); err != nil {
		t.Fatal(out)
	}

	// The standby does not answer.
	standby.stop(syscall.SIGINT)
	refuses("the server of pod 1 does not answer", "OLD_PRIMARY=0")
	standby.start()

	// An interrupted switch turned the data of the running primary into that of
	// a standby. The user sets primary back.
	p.write("db-0/home/data/standby.signal", "")
	p.settings(0, 2)
	if out, err := primary.queryAs("postgres", superuserPassword, "COPY (SELECT 'locked') TO '"+p.at("db-0/home/data/access")+"'"); err != nil {
		t.Fatal(out)
	}
	contains(t, p.mustJob("init.sh", nil), "accepts connections of applications again")
	primary.stop(syscall.SIGINT)
	primary.start()
	primary.expect("SELECT pg_is_in_recovery()", "f")
}

// A primary that was replaced while it did not run does not return as a
// primary, and its writes are kept.
func TestPostgreSQL_ReplacedPrimary(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	standby.stop(syscall.SIGINT)
	p.sql(primary, "INSERT INTO kept VALUES (1001)")
	primary.stop(syscall.SIGKILL)
	standby.boot()
	p.settings(1, 2)
	p.mustJob("switch.sh", nil, "OLD_PRIMARY=0", "OLD_STOPPED=yes")
	p.sql(standby, "INSERT INTO kept VALUES (-1)")
	p.mustJob("init.sh", nil)
	contains(t, primary.start(), "taking a copy", "is kept in")
	primary.waitFor("SELECT sum(n) FROM kept WHERE n < 0 OR n > 1000", "-1")
	primary.expect("SELECT pg_is_in_recovery()", "t")
}

// An interrupted switch leaves two standbys. The next initial configuration
// makes the requested pod the primary again.
func TestPostgreSQL_InterruptedSwitch(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	primary.stop(syscall.SIGINT)
	p.write("db-0/home/data/standby.signal", "")
	primary.boot()
	primary.expect("SELECT pg_is_in_recovery()", "t")
	contains(t, p.mustJob("init.sh", nil), "pod 0 is the primary")
	primary.expect("SELECT count(*) FROM kept", "1000")
	p.sql(primary, "INSERT INTO kept VALUES (1001)")
	standby.waitFor("SELECT count(*) FROM kept", "1001")

	// A rollback succeeds while no server answers, since it may be what makes
	// the server start.
	primary.stop(syscall.SIGINT)
	contains(t, p.mustJob("check.sh", []string{"rollback"}), "nothing to switch")
}

// A standby that has writes which the primary lacks keeps them when it takes a
// copy. A standby whose writes the primary has keeps nothing.
func TestPostgreSQL_DivergedStandby(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	p.settings(0, 3)
	diverged := p.pod(2)
	diverged.start()
	standby.stop(syscall.SIGINT)
	p.sql(primary, "INSERT INTO kept VALUES (1001)")
	diverged.waitFor("SELECT max(n) FROM kept", "1001")
	diverged.stop(syscall.SIGKILL)
	primary.stop(syscall.SIGKILL)

	// The nodes of pods 0 and 2 are lost. The user removes pod 2.
	standby.boot()
	p.settings(1, 3)
	if out, err := p.job("switch.sh", nil, "OLD_PRIMARY=0", "OLD_STOPPED=yes"); err == nil || !strings.Contains(out, "pod 2 does not answer, and may have received more") {
		t.Errorf("the switch is not refused: %v\n%s", err, out)
	}
	p.settings(1, 2)
	contains(t, p.mustJob("switch.sh", nil, "OLD_PRIMARY=0", "OLD_STOPPED=yes"), "pod 1 is the primary")
	p.sql(standby, "INSERT INTO kept VALUES (-1)")
	p.mustJob("init.sh", nil)

	// The node of pod 2 returns.
	p.settings(1, 3)
	kept := func(want int) {
		t.Helper()
		if found, err := filepath.Glob(p.at("db-2/home/aside-*/standby.signal")); err != nil || len(found) != want {
			t.Errorf("pod 2 keeps %v, %v, want %d", found, err, want)
		}
	}
	contains(t, diverged.start(), "taking a copy", "is kept in")
	diverged.waitFor("SELECT min(n) + max(n) FROM kept", "999")
	kept(1)

	// Pod 2 misses a switchover, and its WAL is removed.
	primary.start()
	diverged.stop(syscall.SIGINT)
	p.settings(0, 3)
	contains(t, p.mustJob("switch.sh", nil, "OLD_PRIMARY=1"), "pod 0 is the primary")
	p.mustJob("init.sh", nil)
	if out, err := primary.queryAs("postgres", superuserPassword, "SELECT pg_drop_replication_slot('standby_2')"); err != nil {
		t.Fatal(out)
	}
	contains(t, diverged.start(), "taking a copy")
	kept(1)
}
