package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// OwnCluster is an empty cluster for one test, for tests that would disturb
// others, for example by installing and removing all of config/default.
type OwnCluster struct {
	env *Env
	cluster
}

// NewCluster boots a cluster, and stops it when the test ends, even if the test
// process is killed.
func (e *Env) NewCluster() *OwnCluster {
	e.t.Helper()
	o := &OwnCluster{env: e, cluster: cluster{
		booted: true, dir: filepath.Join(e.t.TempDir(), "cluster"),
		program: shared.program, kubectl: shared.kubectl, helm: shared.helm,
	}}
	down := command{path: o.program, args: []string{"down", "--dir", o.dir}}
	release, err := shared.guard.end(e.Namespace, fmt.Sprintf("'%s' down --dir '%s'", o.program, o.dir))
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		_, err := down.run(ctx)
		release()
		return err
	})
	e.must(o.up(e.t.Context()))
	return o
}

// AdminKubeconfig returns the path of an admin's kubeconfig.
func (o *OwnCluster) AdminKubeconfig() string { return o.kubeconfig() }

// Kubeconfig writes a kubeconfig for an account that authenticates with a
// token, and returns its path.
func (o *OwnCluster) Kubeconfig(a Account) string {
	o.env.t.Helper()
	file := filepath.Join(o.env.t.TempDir(), "kubeconfig")
	_, err := command{path: o.program, args: []string{
		"kubeconfig", "--dir", o.dir, "--serviceaccount", a.namespace + "/" + a.name, "--out", file,
	}}.run(o.env.t.Context())
	o.env.must(err)
	return file
}

// Kubectl runs kubectl as an admin and returns its output.
func (o *OwnCluster) Kubectl(args ...string) string {
	o.env.t.Helper()
	printed, err := o.TryKubectl("", args...)
	o.env.must(err)
	return printed
}

// TryKubectl is Kubectl with a standard input, and returns the error.
func (o *OwnCluster) TryKubectl(stdin string, args ...string) (string, error) {
	o.env.t.Helper()
	return command{path: o.kubectl, args: append([]string{"--kubeconfig", o.kubeconfig()}, args...), stdin: stdin}.run(o.env.t.Context())
}

// Helm runs helm as an admin and returns its output.
func (o *OwnCluster) Helm(args ...string) string {
	o.env.t.Helper()
	printed, err := command{path: o.helm, args: append([]string{"--kubeconfig", o.kubeconfig()}, args...)}.run(o.env.t.Context())
	o.env.must(err)
	return printed
}

// Requests returns an account's requests so far. The audit log may lag behind.
func (o *OwnCluster) Requests(a Account) []Request {
	o.env.t.Helper()
	var found []Request
	o.env.must(readAuditLog(o.auditLog(), 0, a.User(), func(r Request, _ int64) {
		if r.User.Username == a.User() {
			found = append(found, r)
		}
	}))
	return found
}

// Denied returns those of the account's requests that the API server denied
// because of a missing permission, except probes.
func (o *OwnCluster) Denied(a Account) []Request {
	o.env.t.Helper()
	return slices.DeleteFunc(o.Requests(a), func(r Request) bool { return !r.denied() || r.probe() })
}

// FreeAddress returns an unused loopback address.
func (e *Env) FreeAddress() string { return e.freeAddress() }

// Repository returns a new folder with the parts of the repository that are
// needed to deploy from a checkout: a copy of config/, and links to the others.
func (e *Env) Repository() string {
	e.t.Helper()
	dir := filepath.Join(e.t.TempDir(), "chartwright")
	e.must(os.MkdirAll(dir, 0o700))
	e.must(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(Root("config"))))
	for name := range strings.FieldsSeq("Makefile go.mod test charts watches.yaml") {
		e.must(os.Symlink(Root(name), filepath.Join(dir, name)))
	}
	return dir
}
