package database

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lose deletes the volume of a pod.
func (q *pod) lose() {
	q.t.Helper()
	q.stop(syscall.SIGKILL)
	for _, folder := range []string{"home", "run"} {
		q.must(os.RemoveAll(q.at(q.name + "/" + folder)))
		q.folder(q.name + "/" + folder)
	}
}

// refused fails unless the owner's login is refused.
func (q *pod) refused() {
	q.t.Helper()
	if out, err := q.query("SELECT 1"); err == nil || !strings.Contains(out, "no pg_hba.conf entry") {
		q.t.Fatalf("the owner can connect to %s: %v %s", q.name, err, out)
	}
}

// copied returns a primary with rows and a standby that has them.
func (p *postgres) copied() (primary, standby *pod) {
	p.t.Helper()
	primary, standby = p.pod(0), p.pod(1)
	primary.configure()
	standby.start()
	p.sql(primary, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
	standby.waitFor("SELECT count(*) FROM kept", "1000")
	return primary, standby
}

func (p *postgres) sql(q *pod, statements ...string) {
	p.t.Helper()
	for _, statement := range statements {
		if out, err := q.query(statement); err != nil {
			p.t.Fatalf("%s: %v: %s", statement, err, out)
		}
	}
}

// The volume of the primary is lost while a standby has the data.
func TestPostgreSQL_LostVolumeWithStandby(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	primary.lose()

	// Pod 0 waits instead of initializing its volume.
	waiting := primary.command("prepare.sh")
	output, err := os.Create(p.at("waiting"))
	p.must(err)
	defer func() { _ = output.Close() }()
	waiting.Stdout, waiting.Stderr = output, output
	said := func() string {
		text, err := os.ReadFile(output.Name())
		p.must(err)
		return string(text)
	}
	p.must(waiting.Start())
	p.wait("pod 0 to report the data of pod 1", func() error {
		if entries, err := os.ReadDir(p.at("db-0/home")); err != nil || len(entries) > 0 {
			t.Fatalf("the volume has %v, %v", entries, err)
		}
		if out := said(); !strings.Contains(out, "the volume of this pod is empty, and pod db-1 has the data") {
			return errors.New(out)
		}
		return nil
	})
	standby.expect("SELECT count(*) FROM kept", "1000")

	// The user makes pod 1 the primary. Kubernetes reports that pod 0 does not
	// run; otherwise the switch is refused.
	p.settings(1, 2)
	if out, err := p.job("switch.sh", nil, "OLD_PRIMARY=0", "OLD_STOPPED=no"); err == nil || !strings.Contains(out, "its container may still run") {
		t.Errorf("the switch is not refused: %v\n%s", err, out)
	}
	standby.expect("SELECT pg_is_in_recovery()", "t")
	contains(t, p.mustJob("switch.sh", nil, "OLD_PRIMARY=0", "OLD_STOPPED=yes"), "pod 1 is the primary")
	p.sql(standby, "INSERT INTO kept VALUES (1001)")
	p.mustJob("init.sh", nil)

	// Pod 0 becomes a standby by itself.
	p.must(waiting.Wait())
	contains(t, said(), "taking a copy of the data")
	primary.launch()
	primary.waitFor("SELECT count(*) FROM kept", "1001")
	primary.waitReady()
}

// The volume of the primary is lost while the standby does not run.
func TestPostgreSQL_LostVolumeWithoutStandby(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	standby.stop(syscall.SIGINT)
	backups := p.backups("scheduled")
	primary.lose()
	primary.boot()

	// The new, empty server serves no application, and nothing opens it.
	primary.refused()
	if out, err := p.finish(primary.command("ready.sh")); err == nil || !strings.Contains(out, "the volume was empty") {
		t.Errorf("the empty server is ready: %v\n%s", err, out)
	}
	if out, err := p.job("init.sh", nil); err == nil || !strings.Contains(out, "this database was configured before: set restoreFrom") {
		t.Errorf("an empty database was configured: %v\n%s", err, out)
	}
	for _, kind := range []string{"scheduled", "final"} {
		if out, err := p.job("backup.sh", []string{kind}, "KEEP=1"); err == nil || !strings.Contains(out, "would replace good backups") {
			t.Errorf("an empty database was backed up: %v\n%s", err, out)
		}
	}
	if now := p.backups("scheduled"); strings.Join(now, " ") != strings.Join(backups, " ") {
		t.Errorf("backups are %v, want %v", now, backups)
	}
	primary.refused()

	// The standby returns with its data and does not follow the empty server.
	if out := standby.start(); !strings.Contains(out, "starting with the existing data") {
		t.Errorf("the output of the standby is\n%s", out)
	}
	standby.expect("SELECT count(*) FROM kept", "1000")
	if out, err := p.job("init.sh", nil, "RESTORE_FROM=latest"); err == nil || !strings.Contains(out, "pod 1 has data as a standby: set primary to 1") {
		t.Errorf("a backup replaced the newer data of a standby: %v\n%s", err, out)
	}

	// After the switch, pod 0 restarts and takes a copy.
	p.settings(1, 2)
	contains(t, p.mustJob("switch.sh", nil, "OLD_PRIMARY=0"), "pod 0 is new and empty", "pod 1 is the primary")
	p.mustJob("init.sh", nil)
	if out, err := p.finish(primary.command("alive.sh")); err == nil || !strings.Contains(out, "pod db-1 is the primary") {
		t.Errorf("the empty server is alive: %v\n%s", err, out)
	}
	primary.stop(syscall.SIGINT)
	contains(t, primary.start(), "taking a copy")
	primary.waitFor("SELECT count(*) FROM kept", "1000")
	if found, _ := filepath.Glob(p.at("db-0/home/aside-*")); len(found) > 0 {
		t.Errorf("empty data is kept: %v", found)
	}
}

// A standby keeps data that is not part of the primary's.
func TestPostgreSQL_ForeignDataIsKept(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	standby.stop(syscall.SIGINT)
	primary.lose()
	primary.boot()
	// The user discards the data of the standby.
	contains(t, p.mustJob("init.sh", nil, "RESTORE_FROM=none"), "was created")
	primary.waitReady()
	contains(t, standby.start(), "taking a copy", "is kept in")
	aside, err := filepath.Glob(p.at("db-1/home/aside-*/PG_VERSION"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("the data of the standby is not kept: %v, %v", aside, err)
	}

	// The data is complete.
	standby.stop(syscall.SIGINT)
	p.must(os.RemoveAll(p.at("db-1/home/data")))
	p.must(os.Rename(filepath.Dir(aside[0]), p.at("db-1/home/data")))
	p.must(os.Remove(p.at("db-1/home/data/standby.signal")))
	p.settings(1, 2)
	primary.stop(syscall.SIGINT)
	standby.start()
	standby.expect("SELECT count(*) FROM kept", "1000")
}

// A server that was killed is the primary again, with every acknowledged row.
func TestPostgreSQL_KilledPrimary(t *testing.T) {
	p := newPostgres(t)
	primary, standby := p.copied()
	l := primary.startLoad()
	l.more(500)
	primary.stop(syscall.SIGKILL)
	rows := l.end()
	// The event "Readiness probe failed" has a reason.
	if out, err := p.finish(primary.command("ready.sh")); err == nil || !strings.Contains(out, "no response") {
		t.Errorf("the probe does not fail with a reason: %v\n%s", err, out)
	}
	primary.start()
	primary.has(rows)
	standby.waitReady()
}
