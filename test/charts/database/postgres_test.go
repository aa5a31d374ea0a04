package database

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Passwords with special characters of SQL, the shell and password files.
const (
	superuserPassword   = `su'p"e\r:$(word) x`
	replicationPassword = `re:p\l'ica`
	ownerPassword       = `own'er\ "s`
)

// postgres is a real PostgreSQL on this machine with its own account (not
// root), folders, and the chart's scripts.
type postgres struct {
	t    *testing.T
	dir  string
	path string
	port string
	// root is the root folder of the pods' programs, if it is not that of this
	// machine.
	root    string
	account *syscall.Credential
	// primary is the value of this name, and pods is the number of pods.
	primary, pods int
}

// hosts is the format of the pods' addresses.
const hosts = "127.0.1.%d"

// settings writes the settings that pods read without a restart.
func (p *postgres) settings(primary, pods int) {
	p.t.Helper()
	p.primary, p.pods = primary, pods
	p.write("cluster/primary", strconv.Itoa(primary)+"\n")
	p.write("cluster/pods", strconv.Itoa(pods)+"\n")
}

// TestMain adds the programs of PostgreSQL to PATH.
func TestMain(m *testing.M) {
	bin, err := exec.CommandContext(context.Background(), "pg_config", "--bindir").Output()
	path := strings.TrimSpace(string(bin))
	if err != nil {
		// On Debian, pg_config is in another package.
		if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) > 0 {
			path = filepath.Dir(found[len(found)-1])
		}
	}
	if err := os.Setenv("PATH", path+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// newPostgres runs the test in parallel to others, because it mostly waits for servers. It
// skips the test if PostgreSQL is not installed.
func newPostgres(t *testing.T) *postgres {
	t.Helper()
	t.Parallel()
	for _, program := range []string{"initdb", "pg_ctl", "postgres", "pg_controldata", "psql", "pg_dump", "pg_dumpall", "pg_restore", "pg_basebackup", "pg_isready", "vacuumdb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("PostgreSQL is not installed: %v", err)
		}
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // the path of a socket must be short, and t.TempDir's path is not
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &postgres{t: t, dir: dir, path: os.Getenv("PATH"), port: freePort(t), account: account(t)}
	p.must(os.Chmod(dir, 0o755)) // the account must have access
	p.folder("scripts")
	for name, text := range scripts(t) {
		p.write(filepath.Join("scripts", name), text)
	}
	p.folder("backups")
	p.folder("cluster")
	p.settings(0, 2)
	p.folder("secrets")
	p.secret(map[string]string{
		"superuser-password": superuserPassword, "replication-password": replicationPassword, "password": ownerPassword,
	})
	return p
}

// account returns the account that runs PostgreSQL, which refuses to run as
// root.
func account(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
			gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
			if uidErr == nil && gidErr == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	t.Skip("no account for PostgreSQL")
	return nil
}

// freePort returns a port that no other test gets. The listener reserves it: the pods listen
// on other addresses.
func freePort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (p *postgres) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *postgres) at(path string) string { return filepath.Join(p.dir, path) }

// own makes PostgreSQL's account the owner of a file.
func (p *postgres) own(path string) {
	p.t.Helper()
	if p.account != nil {
		p.must(os.Chown(p.at(path), int(p.account.Uid), int(p.account.Gid)))
	}
}

func (p *postgres) folder(path string) {
	p.t.Helper()
	p.must(os.MkdirAll(p.at(path), 0o700))
	p.own(path)
}

func (p *postgres) write(path, text string) {
	p.t.Helper()
	p.must(os.WriteFile(p.at(path), []byte(text), 0o600))
	p.own(path)
}

func (p *postgres) secret(keys map[string]string) {
	p.t.Helper()
	for key, value := range keys {
		p.write(filepath.Join("secrets", key), value)
	}
}

func TestPostgreSQL_Scripts(t *testing.T) {
	p := newPostgres(t)
	p.write("init.sql", "CREATE TABLE greetings (text text);\nINSERT INTO greetings VALUES ('hello');\n")
	statements := "INIT_SQL=" + p.at("init.sql")

	// A primary, configured by the init Job.
	primary := p.pod(0)
	contains(t, primary.configure(statements), "database name-of-database was created; its owner is name-of-owner", "dumped database name-of-database")
	primary.expect("SELECT text FROM greetings", "hello")
	primary.expect("SELECT tableowner FROM pg_tables WHERE tablename = 'greetings'", "name-of-owner")
	primary.expect("SELECT datcollate FROM pg_database WHERE datname = 'name-of-database'", "C")
	// The kernel ends a connection to a standby whose node has vanished, which
	// would block checkpoints for as long as it resends.
	primary.expect("SHOW tcp_user_timeout", "60000")
	first := p.backups("scheduled")
	if len(first) != 1 {
		t.Fatalf("backups are %v, want one", first)
	}
	if out := p.mustJob("init.sh", nil, statements); strings.Contains(out, "created") || strings.Contains(out, "dumped") {
		t.Errorf("the second run changed something:\n%s", out)
	}
	primary.expect("SELECT count(*) FROM greetings", "1")
	if out, err := primary.queryAs("name-of-owner", "wrong", "SELECT 1"); err == nil {
		t.Errorf("a wrong password is accepted: %s", out)
	}

	// A standby replicates the primary.
	standby := p.pod(1)
	contains(t, standby.start(), "taking a copy")
	standby.expect("SELECT pg_is_in_recovery()", "t")
	standby.expect("SELECT text FROM greetings", "hello")
	if _, err := primary.query("INSERT INTO greetings VALUES ('again')"); err != nil {
		t.Fatal(err)
	}
	standby.waitFor("SELECT count(*) FROM greetings", "2")
	if _, err := standby.query("INSERT INTO greetings VALUES ('here')"); err == nil {
		t.Error("a standby accepts writes")
	}
	contains(t, p.mustJob("test.sh", nil, "PGHOST=127.0.1.0", "PGUSER=name-of-owner", "PGPASSWORD="+ownerPassword, "PGDATABASE=name-of-database",
		"READ_HOST=127.0.1.1", "READ_PORT="+p.port), "accepts writes and answers")

	// Both servers are killed and find their data again. The remaining
	// postmaster.pid contains the process ID of another process.
	standby.stop(syscall.SIGKILL)
	primary.stop(syscall.SIGKILL)
	p.wait("the servers' children to end", func() error {
		if out, err := exec.CommandContext(t.Context(), "pgrep", "-f", p.dir+"/db-").Output(); err == nil {
			return fmt.Errorf("still running: %s", out)
		}
		return nil
	})
	pid := p.at("db-0/home/data/postmaster.pid")
	left, err := os.ReadFile(pid) // #nosec G304 -- a file of this test's
	p.must(err)
	_, rest, _ := strings.Cut(string(left), "\n")
	p.must(os.WriteFile(pid, []byte(strconv.Itoa(os.Getppid())+"\n"+rest), 0o600))
	if out := standby.prepare(); !strings.Contains(out, "starting with the existing data") {
		t.Errorf("the output of a standby without a primary is\n%s", out)
	}
	primary.start()
	if out := standby.start(); strings.Contains(out, "taking a copy") {
		t.Errorf("a standby that can follow copies the primary:\n%s", out)
	}
	standby.waitFor("SELECT count(*) FROM greetings", "2")

	// The primary no longer has the WAL that the standby needs.
	standby.stop(syscall.SIGINT)
	if out, err := primary.queryAs("postgres", superuserPassword, "SELECT pg_drop_replication_slot('standby_1')"); err != nil {
		t.Fatal(out)
	}
	contains(t, standby.start(), "taking a copy")

	// Backups: only the newest are kept.
	for range 2 {
		before := len(p.backups("scheduled"))
		p.wait("the next second", func() error {
			if slices.Contains(p.backups("scheduled"), time.Now().UTC().Format("20060102T150405Z")) {
				return fmt.Errorf("%d backups", before)
			}
			return nil
		})
		p.mustJob("backup.sh", []string{"scheduled"}, "KEEP=2")
	}
	if now := p.backups("scheduled"); len(now) != 2 || slices.Contains(now, first[0]) {
		t.Errorf("backups are %v, want two without %v", now, first)
	}
	contains(t, p.mustJob("backup.sh", []string{"final"}), "the backup is final/")

	// The slot of a standby that was scaled down is dropped.
	standby.stop(syscall.SIGINT)
	p.mustJob("init.sh", nil, statements, "PODS=1")
	if out, err := primary.queryAs("postgres", superuserPassword, "SELECT count(*) FROM pg_replication_slots"); err != nil || out != "0" {
		t.Errorf("slots remain: %s", out)
	}

	// The password in the Secret changes.
	primary.stop(syscall.SIGINT)
	p.secret(map[string]string{"password": "other"})
	primary.start()
	p.mustJob("init.sh", nil, statements)
	if out, err := primary.queryAs("name-of-owner", "other", "SELECT count(*) FROM greetings"); err != nil || out != "2" {
		t.Errorf("with the new password: %s", out)
	}
	p.secret(map[string]string{"password": ownerPassword})

	// A folder without a version of PostgreSQL is not deleted.
	primary.stop(syscall.SIGINT)
	p.must(os.Remove(p.at("db-0/home/data/PG_VERSION")))
	out, err := p.finish(primary.command("prepare.sh"))
	if err == nil || !strings.Contains(out, "left as it is") {
		t.Errorf("data without a version: %v\n%s", err, out)
	}
}
