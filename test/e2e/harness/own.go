package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Own is a cluster of a test's own, with nothing in it, for what would disturb
// the others: to install and to remove all of config/default.
type Own struct {
	env *Env
	cluster
}

// OwnCluster boots one, and stops it when the test ends, however it ends.
func (e *Env) OwnCluster() *Own {
	e.t.Helper()
	o := &Own{env: e, cluster: cluster{
		ours: true, dir: filepath.Join(e.t.TempDir(), "cluster"),
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
	_, err = command{path: o.program, args: []string{"up", "--dir", o.dir, "--audit-log", o.auditLog()}}.run(e.t.Context())
	e.must(err)
	return o
}

// AdminKubeconfig is the path of an admin's kubeconfig.
func (o *Own) AdminKubeconfig() string { return o.kubeconfig() }

// Kubeconfig writes one for an account, which logs in by a token and nothing
// else, and returns its path.
func (o *Own) Kubeconfig(a Account) string {
	o.env.t.Helper()
	file := filepath.Join(o.env.t.TempDir(), "kubeconfig")
	_, err := command{path: o.program, args: []string{
		"kubeconfig", "--dir", o.dir, "--serviceaccount", a.namespace + "/" + a.name, "--out", file,
	}}.run(o.env.t.Context())
	o.env.must(err)
	return file
}

// Kubectl runs kubectl as an admin and returns what it printed.
func (o *Own) Kubectl(args ...string) string {
	o.env.t.Helper()
	printed, err := o.TryKubectl("", args...)
	o.env.must(err)
	return printed
}

// TryKubectl is Kubectl where it may fail, with something on its standard input.
func (o *Own) TryKubectl(stdin string, args ...string) (string, error) {
	o.env.t.Helper()
	return command{path: o.kubectl, args: append([]string{"--kubeconfig", o.kubeconfig()}, args...), stdin: stdin}.run(o.env.t.Context())
}

// Requests returns what an account asked for so far, as far as the audit log has
// caught up.
func (o *Own) Requests(a Account) []Request {
	o.env.t.Helper()
	var found []Request
	o.env.must(readAuditLog(o.auditLog(), 0, a.User(), func(r Request, _ int64) {
		if r.User.Username == a.User() {
			found = append(found, r)
		}
	}))
	return found
}

// Refused returns what of it the API server refused for lack of a right.
func (o *Own) Refused(a Account) []Request {
	o.env.t.Helper()
	return slices.DeleteFunc(o.Requests(a), func(r Request) bool { return !r.refused() || r.probe() })
}

// FreeAddress returns a loopback address that nobody listens on.
func (e *Env) FreeAddress() string { return e.freeAddress() }

// Repository copies what of the repository a checkout needs to be deployed, and
// returns the folder.
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
