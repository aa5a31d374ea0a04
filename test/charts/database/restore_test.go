package database

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// renameBackups moves the backups of one kind to another time.
func (p *postgres) renameBackups(kind string, at time.Time) {
	p.t.Helper()
	names := p.backups(kind)
	if len(names) != 1 {
		p.t.Fatalf("backups of kind %s are %v, want one", kind, names)
	}
	p.must(os.Rename(p.at("backups/"+kind+"/"+names[0]), p.at("backups/"+kind+"/"+at.UTC().Format("20060102T150405Z"))))
}

// A snapshot under load contains every acknowledged row, and a new release
// restores it.
func TestPostgreSQL_Snapshot(t *testing.T) {
	p := newPostgres(t)
	primary := p.pod(0)
	primary.configure()
	asSuperuser := func(statement string) {
		t.Helper()
		if out, err := primary.queryAs("postgres", superuserPassword, statement); err != nil {
			t.Fatalf("%s: %v: %s", statement, err, out)
		}
	}

	// A snapshot that would lack a database is refused, and the load continues.
	asSuperuser(`CREATE DATABASE blueprint TEMPLATE "name-of-database" IS_TEMPLATE true`)
	asSuperuser("CREATE DATABASE archive ALLOW_CONNECTIONS false")
	l := primary.startLoad()
	if out, err := p.job("backup.sh", []string{"final"}); err == nil || !strings.Contains(out, "no connections are allowed to: archive") {
		t.Errorf("a snapshot without a database is not refused: %v\n%s", err, out)
	}
	l.more(1)
	asSuperuser("ALTER DATABASE archive ALLOW_CONNECTIONS true")

	// After a snapshot that fails, the load continues.
	p.shim("full", "pg_dump", dumpWithoutSpace)
	path := p.path
	p.path = p.at("full") + ":" + path
	out, err := p.job("backup.sh", []string{"final"})
	if p.path = path; err == nil {
		t.Fatal("a snapshot without space succeeds")
	}
	contains(t, out, "accepts no connections", "accepts connections of applications again")
	rows := primary.has(l.end())
	l = primary.startLoad()
	l.more(500)
	contains(t, p.mustJob("backup.sh", []string{"final"}), "accepts no connections", "the backup is final/")
	rows += l.end()
	primary.refused()

	// The release and its volumes are deleted. Another release restores the
	// snapshot, whose identity is not that of the new release.
	primary.lose()
	primary.env = nil
	contains(t, primary.configure("RESTORE_FROM=latest", "INCARNATION=second"), "restoring final/")
	primary.has(rows)
	primary.expect("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database WHERE datname = 'archive' OR datistemplate", "archive blueprint template0 template1")
	primary.startLoad()
}

// The newest backup is restored, whatever its kind, without edits of the spec,
// and with or without metrics.
func TestPostgreSQL_Restore(t *testing.T) {
	p := newPostgres(t)
	p.secret(map[string]string{"metrics-password": "metrics"})
	primary := p.pod(0)
	primary.configure()
	p.sql(primary, "CREATE TABLE months (name text)", "GRANT SELECT ON months TO exporter", "INSERT INTO months VALUES ('January')")
	january := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.renameBackups("scheduled", january.AddDate(0, -1, 0))
	p.mustJob("backup.sh", []string{"requested"})
	p.renameBackups("requested", january)

	// A Database of this name was deleted in February, and made again from the
	// snapshot.
	p.mustJob("backup.sh", []string{"final"})
	p.renameBackups("final", january.AddDate(0, 1, 0))
	primary.lose()
	p.must(os.Remove(p.at("secrets/metrics-password")))
	contains(t, primary.configure("RESTORE_FROM=latest"), "restoring final/20260201")
	p.sql(primary, "INSERT INTO months VALUES ('June')")
	p.must(os.RemoveAll(p.at("backups/scheduled")))
	p.mustJob("backup.sh", []string{"scheduled"})
	reported, err := os.ReadFile(p.at("cluster/termination-log"))
	if lines := strings.Fields(string(reported)); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "scheduled/") || lines[1] != "final/20260201T000000Z" || lines[2] != "requested/20260101T000000Z" {
		t.Errorf("the reported backups are %v, %v", lines, err)
	}
	if out := p.mustJob("init.sh", []string{"if-needed"}, "RESTORE_FROM=latest"); !strings.Contains(out, "nothing to restore") {
		t.Errorf("a backup is restored without need:\n%s", out)
	}

	// The volume is lost. A client that logs in as soon as it can is refused
	// until the restore is complete, and an interrupted restore is repeated.
	primary.lose()
	primary.boot()
	primary.refused()
	p.shim("late", "pg_restore", `"$(PATH=${PATH#*:} command -v pg_restore)" "$@" || exit $?; case "$*" in *name-of-database.dump) exit 1 ;; esac`)
	path := p.path
	p.path = p.at("late") + ":" + path
	if out, err := p.job("init.sh", []string{"if-needed"}, "RESTORE_FROM=latest"); err == nil {
		t.Errorf("no error for a failed restore:\n%s", out)
	}
	p.path = path
	primary.refused()
	contains(t, p.mustJob("init.sh", []string{"if-needed"}, "RESTORE_FROM=latest"), "restoring scheduled/")
	primary.waitReady()
	primary.expect("SELECT string_agg(name, ' ' ORDER BY name) FROM months", "January June")

	// A named backup, and metrics again.
	p.secret(map[string]string{"metrics-password": "metrics"})
	primary.lose()
	contains(t, primary.configure("RESTORE_FROM=requested/20260101T000000Z"), "restoring requested/")
	primary.expect("SELECT string_agg(name, ' ' ORDER BY name) FROM months", "January")
	if out, err := primary.queryAs("exporter", "metrics", "SELECT name FROM months"); err != nil || out != "January" {
		t.Errorf("the exporter reads %q, %v", out, err)
	}
}

// A database without backups is initialized, upgraded to another configuration
// and deleted without a claim.
func TestPostgreSQL_WithoutBackups(t *testing.T) {
	p := newPostgres(t)
	primary := p.pod(0)
	without := "BACKUPS=" + p.at("none")
	if out := primary.configure(without); strings.Contains(out, "dumped") {
		t.Errorf("a backup was taken:\n%s", out)
	}
	p.sql(primary, "CREATE TABLE kept ()")
	p.mustJob("init.sh", nil, without)
	primary.stop(syscall.SIGINT)
	primary.start()
	primary.expect("SELECT count(*) FROM kept", "0")
	if found, _ := filepath.Glob(p.at("none")); len(found) > 0 {
		t.Errorf("the scripts created %v", found)
	}
}

// The server runs as a user without a name, as on OpenShift.
func TestPostgreSQL_AnyUser(t *testing.T) {
	p := newPostgres(t)
	if p.account == nil {
		t.Skip("only root can run PostgreSQL as another user")
	}
	if found, _ := filepath.Glob("/usr/lib/*/libnss_wrapper.so"); len(found) == 0 {
		t.Skip("libnss-wrapper, which images contain, is not installed")
	}
	p.account.Uid, p.account.Gid = 1000650000, 0
	p.must(filepath.WalkDir(p.dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != p.dir {
			err = os.Chown(path, int(p.account.Uid), int(p.account.Gid))
		}
		return err
	}))
	primary := p.pod(0)
	primary.configure()
	primary.expect("SELECT 1", "1")
}
