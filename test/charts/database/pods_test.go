package database

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// pod is a pod of the StatefulSet: each listens on an address of its own, all
// on the same port.
type pod struct {
	*postgres
	name, address string
	env           []string
	// server is the running process, if any.
	server   atomic.Pointer[exec.Cmd]
	stopping chan struct{}
	stopped  chan struct{}
}

func (p *postgres) pod(ordinal int, env ...string) *pod {
	p.t.Helper()
	name := fmt.Sprintf("db-%d", ordinal)
	for _, folder := range []string{"", "/home", "/run", "/config"} {
		p.folder(name + folder)
	}
	q := &pod{postgres: p, name: name, address: fmt.Sprintf(hosts, ordinal), env: env}
	files := config(p.t)
	conf := strings.ReplaceAll(files["postgresql.conf"], "listen_addresses = '*'", "listen_addresses = '"+q.address+"'")
	conf = strings.ReplaceAll(conf, "port = 5432", "port = "+p.port)
	p.write(name+"/config/postgresql.conf", conf)
	for _, level := range []string{"open", "locked", "closed"} {
		file := "pg_hba." + level + ".conf"
		p.write(name+"/config/"+file, files[file])
	}
	return q
}

// command runs a script with exactly the environment of the pod.
func (q *pod) command(script string, args ...string) *exec.Cmd {
	// Independent of the test's context, because the server is stopped after
	// the context has ended.
	cmd := exec.CommandContext(context.WithoutCancel(q.t.Context()), "sh", append([]string{q.at("scripts/" + script)}, args...)...)
	cmd.Dir = q.dir
	cmd.Env = append([]string{
		"PATH=" + q.path, "PAUSE=0.2", "TRIES=3",
		"POD_NAME=" + q.name, "PEER=" + hosts, "CLUSTER=" + q.at("cluster"), "PGPORT=" + q.port,
		"DATABASE_HOME=" + q.at(q.name+"/home"), "RUN=" + q.at(q.name+"/run"), "CONFIG=" + q.at(q.name+"/config"),
		"SECRETS=" + q.at("secrets"),
	}, q.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: q.account}
	if q.root != "" {
		q.inRoot(cmd)
	}
	return cmd
}

// finish waits for a command and checks that its output contains no password.
func (p *postgres) finish(cmd *exec.Cmd) (string, error) {
	p.t.Helper()
	out, err := cmd.CombinedOutput()
	p.quiet(string(out))
	return string(out), err
}

func (p *postgres) quiet(out string) {
	p.t.Helper()
	for _, password := range []string{superuserPassword, replicationPassword, ownerPassword, "SCRAM-SHA-256$"} {
		if strings.Contains(out, password) {
			p.t.Errorf("the output contains a password:\n%s", out)
		}
	}
}

func (q *pod) prepare() string {
	q.t.Helper()
	out, err := q.finish(q.command("prepare.sh"))
	if err != nil {
		q.t.Fatalf("prepare %s: %v\n%s", q.name, err, out)
	}
	return out
}

// boot prepares the pod, starts its server and waits until it answers.
func (q *pod) boot() string {
	q.t.Helper()
	out := q.prepare()
	q.launch()
	q.wait(q.name+" to answer", func() error {
		return exec.CommandContext(q.t.Context(), "pg_isready", "-q", "-h", q.address, "-p", q.port).Run()
	})
	return out
}

// start boots the pod and waits until it is ready.
func (q *pod) start() string {
	q.t.Helper()
	out := q.boot()
	q.waitReady()
	return out
}

// configure boots a new primary and runs the initial configuration.
func (q *pod) configure(env ...string) string {
	q.t.Helper()
	q.boot()
	out := q.mustJob("init.sh", nil, env...)
	q.waitReady()
	return out
}

func (q *pod) launch() {
	q.t.Helper()
	log, err := os.OpenFile(q.at(q.name+"/log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	q.must(err)
	run := func() (*exec.Cmd, error) {
		cmd := q.command("start.sh")
		cmd.Stdout, cmd.Stderr = log, log
		err := cmd.Start()
		if err == nil {
			q.server.Store(cmd)
		}
		return cmd, err
	}
	// Restart the server when it exits, as the kubelet does.
	stopping, stopped := make(chan struct{}), make(chan struct{})
	q.stopping, q.stopped = stopping, stopped
	cmd, err := run()
	q.must(err)
	go func() {
		defer close(stopped)
		for err == nil {
			_ = cmd.Wait()
			select {
			case <-stopping:
				return
			case <-time.After(500 * time.Millisecond):
			}
			select {
			case <-stopping:
				return
			default:
				cmd, err = run()
			}
		}
	}()
	q.t.Cleanup(func() {
		q.stop(syscall.SIGINT)
		_ = log.Close()
		text, err := os.ReadFile(q.at(q.name + "/log"))
		q.must(err)
		q.quiet(string(text))
		if q.t.Failed() {
			q.t.Logf("log of %s:\n%s", q.name, text)
		}
	})
}

func (q *pod) stop(signal os.Signal) {
	if q.stopping == nil {
		return
	}
	close(q.stopping)
	for q.stopping != nil {
		_ = q.server.Load().Process.Signal(signal)
		select {
		case <-q.stopped:
			q.stopping = nil
		case <-time.After(time.Second):
		}
	}
}

func (p *postgres) wait(what string, check func() error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("waited for %s: %v", what, err)
		case <-tick.C:
		}
	}
}

func (q *pod) waitReady() {
	q.t.Helper()
	q.wait(q.name+" to be ready", func() error { return q.command("ready.sh").Run() })
	if out, err := q.finish(q.command("alive.sh")); err != nil {
		q.t.Fatalf("%s is ready, but the liveness probe fails: %v\n%s", q.name, err, out)
	}
}

// job runs a script in the environment of a Job.
func (p *postgres) job(script string, args []string, env ...string) (string, error) {
	p.t.Helper()
	q := &pod{postgres: p, name: "job", env: append([]string{
		"PGHOST=" + fmt.Sprintf(hosts, p.primary), "PGUSER=postgres", "PGPASSWORD=" + superuserPassword, "PGCONNECT_TIMEOUT=5",
		"BACKUPS=" + p.at("backups"), "DATABASE=name-of-database", "OWNER=name-of-owner",
		"PODS=" + strconv.Itoa(p.pods), "PRIMARY=" + strconv.Itoa(p.primary), "INCARNATION=first",
		"MAJOR_UPGRADE=DumpAndRestore", "WAIT=20", "TERMINATION_LOG=" + p.at("cluster/termination-log"),
	}, env...)}
	return p.finish(q.command(script, args...))
}

func (p *postgres) mustJob(script string, args []string, env ...string) string {
	p.t.Helper()
	out, err := p.job(script, args, env...)
	if err != nil {
		p.t.Fatalf("%s %v: %v\n%s", script, args, err, out)
	}
	return out
}

// query runs SQL as the owner.
func (q *pod) query(sql string) (string, error) {
	q.t.Helper()
	return q.queryAs("name-of-owner", ownerPassword, sql)
}

func (q *pod) queryAs(role, password, sql string) (string, error) {
	q.t.Helper()
	cmd := exec.CommandContext(q.t.Context(), "psql", "-XAtqw", "-v", "ON_ERROR_STOP=1", "-c", sql)
	cmd.Env = q.clientEnv(role, password)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (q *pod) clientEnv(role, password string) []string {
	return []string{
		"PATH=" + q.path, "PGHOST=" + q.address, "PGPORT=" + q.port, "PGUSER=" + role,
		"PGDATABASE=name-of-database", "PGPASSWORD=" + password,
	}
}

// log returns the output of the pod's server.
func (q *pod) log() string {
	q.t.Helper()
	text, err := os.ReadFile(q.at(q.name + "/log"))
	q.must(err)
	return string(text)
}

func (q *pod) expect(sql, want string) {
	q.t.Helper()
	if got, err := q.query(sql); err != nil || got != want {
		q.t.Fatalf("%s returns %q, %v, want %q", sql, got, err, want)
	}
}

func (q *pod) waitFor(sql, want string) {
	q.t.Helper()
	q.wait(sql+" of "+q.name+" to be "+want, func() error {
		if got, err := q.query(sql); err != nil || got != want {
			return fmt.Errorf("got %q: %w", got, err)
		}
		return nil
	})
}

func (p *postgres) backups(set string) (names []string) {
	p.t.Helper()
	found, err := os.ReadDir(p.at("backups/" + set))
	if !os.IsNotExist(err) {
		p.must(err)
	}
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

func contains(t *testing.T, out string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q is missing in:\n%s", w, out)
		}
	}
}
