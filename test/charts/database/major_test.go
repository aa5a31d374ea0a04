package database

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image unpacks an image of PostgreSQL, which the tests with containers build,
// and returns its root folder and its search path.
func (p *postgres) image(major string) (root, path string) {
	p.t.Helper()
	images := os.Getenv("CHARTWRIGHT_IMAGES")
	if images == "" {
		p.t.Skip("CHARTWRIGHT_IMAGES names no folder with images: part of make check-long (test-node)")
	}
	archives, err := filepath.Glob(filepath.Join(images, "*_postgres_"+major+"-*.tar"))
	if err != nil || len(archives) != 1 {
		p.t.Fatalf("%s has %d images of PostgreSQL %s, %v, want one", images, len(archives), major, err)
	}
	archive, err := tarball.ImageFromPath(archives[0], nil)
	p.must(err)
	root = p.t.TempDir()
	files := mutate.Extract(archive)
	unpack := exec.CommandContext(p.t.Context(), "tar", "-x", "-C", root) // #nosec G204 -- the test's own folder
	unpack.Stdin = files
	p.must(unpack.Run())
	p.must(files.Close())
	// PostgreSQL requires a name for its user.
	users, err := os.OpenFile(filepath.Join(root, "etc", "passwd"), os.O_APPEND|os.O_WRONLY, 0) // #nosec G304 -- the test's own file
	p.must(err)
	_, err = fmt.Fprintf(users, "tester:x:%d:%d::/:/bin/sh\n", p.account.Uid, p.account.Gid)
	p.must(errors.Join(err, users.Close(), os.MkdirAll(root+p.dir, 0o755))) // #nosec G301 -- the account must have access
	return root, "/usr/lib/postgresql/" + major + "/bin:/usr/local/bin:/usr/sbin:/usr/bin:/bin"
}

// inRoot runs a command with another root folder, in which the folder of the
// test is mounted.
func (p *postgres) inRoot(cmd *exec.Cmd) {
	const script = `mount --rbind /dev "$0/dev" && mount --bind "$1" "$0$1" && cd / && root=$0 user=$2 && shift 2 && exec chroot --userspec="$user" "$root" "$@"`
	user := fmt.Sprintf("%d:%d", p.account.Uid, p.account.Gid)
	cmd.Args = append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", script, p.root, p.dir, user}, cmd.Args...)
	cmd.Path, cmd.Err = exec.LookPath("unshare")
	cmd.SysProcAttr = nil
}

// dumpWithoutSpace is a pg_dump that fails as on a full volume.
const dumpWithoutSpace = `[ "$1" != --version ] || exec "$(PATH=${PATH#*:} command -v pg_dump)" "$@"; echo "no space left on device" >&2; exit 1`

// shim writes a program to a folder that precedes others in a PATH.
func (p *postgres) shim(folder, name, body string) {
	p.t.Helper()
	p.folder(folder)
	p.write(filepath.Join(folder, name), "#!/bin/sh\n"+body+"\n")
	p.must(os.Chmod(p.at(filepath.Join(folder, name)), 0o700)) // #nosec G302 -- a program
}

func TestPostgreSQL_MajorUpgrade(t *testing.T) {
	p := newPostgres(t)
	if p.account == nil {
		t.Skip("only root can use images")
	}
	const old = "15"
	oldRoot, oldPath := p.image(old)
	newRoot, newPath := p.image("18")
	in := func(path string) {
		p.path, p.root = path, newRoot
		if path == oldPath {
			p.root = oldRoot
		}
	}
	started := func(q *pod, path string) string {
		in(path)
		return q.start()
	}
	job := func(path, script string, env ...string) (string, error) {
		in(path)
		return p.job(script, nil, env...)
	}
	mustJob := func(path, script string, env ...string) string {
		t.Helper()
		in(path)
		return p.mustJob(script, nil, env...)
	}

	primary, standby := p.pod(0), p.pod(1)
	in(oldPath)
	primary.configure()
	started(standby, oldPath)
	in(newPath)
	for _, sql := range []string{
		"CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (1)",
	} {
		if out, err := primary.query(sql); err != nil {
			t.Fatal(out)
		}
	}
	for _, sql := range []string{
		`CREATE DATABASE "an|other one" CONNECTION LIMIT 7`, "CREATE ROLE guest LOGIN PASSWORD 'welcome'", `CREATE TABLE in_postgres ()`,
	} {
		if out, err := primary.queryAs("postgres", superuserPassword, sql); err != nil {
			t.Fatal(out)
		}
	}
	refusesNew := func() {
		t.Helper()
		in(newPath)
		out, err := p.finish(primary.command("prepare.sh"))
		if err == nil || !strings.Contains(out, "there is no dump for this change: the data is left as it is") {
			t.Fatalf("newer programs accept older data: %v\n%s", err, out)
		}
	}
	shutOut := func() {
		t.Helper()
		if out, err := primary.query("SELECT 1"); err == nil || !strings.Contains(out, "no pg_hba.conf entry") {
			t.Fatalf("the owner can connect: %v %s", err, out)
		}
	}

	// Nothing is upgraded without a request.
	contains(t, mustJob(newPath, "check.sh"), "can become", "by a dump of all databases")
	if out, err := job(newPath, "check.sh", "MAJOR_UPGRADE=Refuse"); err == nil || !strings.Contains(out, "majorUpgrade is Refuse") {
		t.Errorf("the upgrade is not refused: %v\n%s", err, out)
	}
	if out, err := job(newPath, "upgrade.sh", "MAJOR_UPGRADE=Refuse"); err == nil {
		t.Errorf("the refused upgrade was executed:\n%s", out)
	}
	primary.expect("SELECT n FROM kept", "1")
	contains(t, mustJob(oldPath, "check.sh"), "nothing to do")
	contains(t, mustJob(oldPath, "upgrade.sh"), "nothing to upgrade")

	// After a failed dump, clients can connect again.
	p.shim("full", "pg_dump", dumpWithoutSpace)
	out, err := job(p.at("full")+":"+newPath, "upgrade.sh")
	if err == nil || !strings.Contains(out, "no space left") {
		t.Fatalf("a dump without space: %v\n%s", err, out)
	}
	contains(t, out, "accepts no connections", "accepts connections of applications again")
	primary.expect("SELECT n FROM kept", "1")

	// A dump is useless once clients can write again.
	in(newPath)
	client := exec.CommandContext(t.Context(), "psql", "-XAtqw", "-c", "SELECT pg_sleep(600)")
	client.Env = primary.clientEnv("name-of-owner", ownerPassword)
	p.must(client.Start())
	p.wait("the client to connect", func() error {
		if n, err := primary.query("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"); err != nil || n != "1" {
			return errors.Join(err, errors.New(n))
		}
		return nil
	})
	mustJob(newPath, "upgrade.sh")
	if err := client.Wait(); err == nil {
		t.Error("a client is still connected")
	}
	shutOut()
	contains(t, mustJob(oldPath, "init.sh"), "accepts connections of applications again")
	if out, err := primary.query("INSERT INTO kept VALUES (2)"); err != nil {
		t.Fatal(out)
	}
	primary.stop(syscall.SIGINT)
	refusesNew()
	started(primary, oldPath)
	primary.expect("SELECT count(*) FROM kept", "2")

	// The upgrade in the order of a StatefulSet: standbys first. An application
	// inserts rows until the server is locked.
	l := primary.startLoad()
	l.more(500)
	mustJob(newPath, "upgrade.sh")
	rows := l.end()
	shutOut()
	standby.stop(syscall.SIGINT)
	in(newPath)
	contains(t, standby.prepare(), "waiting until both have the same version")
	standby.launch()
	standby.waitReady()
	if err := exec.CommandContext(t.Context(), "pg_isready", "-q", "-h", standby.address, "-p", p.port).Run(); err == nil {
		t.Error("a waiting standby accepts connections")
	}
	primary.stop(syscall.SIGINT)
	in(newPath)
	contains(t, primary.boot(), "moving the data of PostgreSQL "+old+" aside")

	// Before the restore, a rollback is possible and loses no data.
	contains(t, mustJob(oldPath, "check.sh"), "is not finished: going back")
	primary.stop(syscall.SIGINT)
	contains(t, started(primary, oldPath), "going back to the data of PostgreSQL "+old)
	contains(t, mustJob(oldPath, "init.sh"), "accepts connections of applications again")
	primary.expect("SELECT count(*) FROM kept", "2")
	rows = primary.has(rows)

	// Repeat the upgrade until the end. An interrupted restore is repeated.
	in(newPath)
	l = primary.startLoad()
	l.more(500)
	mustJob(newPath, "upgrade.sh")
	rows += l.end()
	primary.stop(syscall.SIGINT)
	in(newPath)
	primary.boot()
	p.shim("late", "pg_restore", `"$(PATH=${PATH#*:} command -v pg_restore)" "$@" || exit $?; case "$*" in *name-of-database.dump) exit 1 ;; esac`)
	if out, err := job(p.at("late")+":"+newPath, "init.sh"); err == nil {
		t.Errorf("no error for a failed restore:\n%s", out)
	}
	shutOut()
	contains(t, mustJob(newPath, "init.sh"), "restoring upgrade/", "restored database name-of-database", "accepts connections of applications again")
	primary.expect("SELECT count(*) FROM kept", "2")
	if out, err := primary.queryAs("postgres", superuserPassword, "SELECT datconnlimit FROM pg_database WHERE datname IN ('an|other one', 'name-of-database') ORDER BY 1"); err != nil || out != "-1\n7" {
		t.Errorf("limits are %q: %v", out, err)
	}
	if out, err := primary.queryAs("guest", "welcome", "SELECT 1"); err != nil {
		t.Errorf("a role is missing: %s", out)
	}
	rows = primary.has(rows)
	standby.waitFor("SELECT count(*) FROM kept", "2")
	standby.waitFor("SELECT count(*) FROM load", strconv.FormatInt(rows, 10))
	standby.waitReady()
	primary.startLoad()

	// After the restore, a rollback is not possible.
	if out, err := job(oldPath, "check.sh"); err == nil || !strings.Contains(out, "cannot read it") {
		t.Errorf("the rollback is not refused: %v\n%s", err, out)
	}
	primary.stop(syscall.SIGINT)
	in(oldPath)
	if out, err := p.finish(primary.command("prepare.sh")); err == nil || !strings.Contains(out, "left as it is") {
		t.Errorf("older programs accept newer data: %v\n%s", err, out)
	}
	started(primary, newPath)
	if _, err := os.Stat(p.at("db-0/home/old")); !os.IsNotExist(err) {
		t.Errorf("the old data still exist: %v", err)
	}
	contains(t, mustJob(newPath, "init.sh"), "is configured")
	primary.expect("SELECT count(*) FROM kept", "2")
}
