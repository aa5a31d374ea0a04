package harness

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// User is a user of kubectl and its plugin in the test's namespace, with the
// permissions of a Role.
type User struct {
	env        *Env
	account    Account
	kubeconfig string
	// bin contains the plugin under the names that kubectl searches for; cache
	// is kubectl's discovery cache.
	bin, cache string
}

// NewUser creates a user with exactly the given rules in the test's
// namespace.
func (e *Env) NewUser(rules ...rbacv1.PolicyRule) *User {
	e.t.Helper()
	created, err := e.Typed.CoreV1().ServiceAccounts(e.Namespace).Create(e.t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "person-"},
	}, metav1.CreateOptions{})
	e.must(err)
	account := Account{e.Namespace, created.Name}
	p := &User{env: e, account: account, bin: e.t.TempDir(), cache: e.t.TempDir()}
	for _, name := range []string{"kubectl-chartwright", "kubectl_complete-chartwright"} {
		e.must(os.Symlink(shared.operator, filepath.Join(p.bin, name)))
	}
	if len(rules) > 0 {
		e.bindRole(account, rules)
	}
	p.kubeconfig = e.kubeconfig(account)
	return p
}

// For returns the user for a part of a test.
func (p *User) For(e *Env) *User {
	sub := *p
	sub.env = e
	return &sub
}

// Account returns the account with which the user authenticates.
func (p *User) Account() Account { return p.account }

// Grant grants the user rules in all namespaces.
func (p *User) Grant(rules ...rbacv1.PolicyRule) {
	p.env.t.Helper()
	p.env.bindClusterRole(p.account, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: p.account.name + "-"}, Rules: rules})
}

// Through sends all requests of the user through a proxy.
func (p *User) Through(proxy *Proxy) {
	p.env.t.Helper()
	p.env.must(proxy.redirect(p.kubeconfig))
}

// On returns a rule for this kind only.
func (k Kind) On(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{plural(k.Kind)}, Verbs: verbs}
}

// Kubeconfig returns the path of the user's kubeconfig.
func (p *User) Kubeconfig() string { return p.kubeconfig }

// Output is the exit code and the output of a program.
type Output struct {
	Code           int
	Stdout, Stderr string
}

// Chartwright runs "kubectl-chartwright". The test's namespace is the default
// of the context, so -n is optional.
func (p *User) Chartwright(args ...string) Output {
	p.env.t.Helper()
	return p.run(filepath.Join(p.bin, "kubectl-chartwright"), "", args)
}

// ChartwrightWith is Chartwright with a standard input.
func (p *User) ChartwrightWith(stdin string, args ...string) Output {
	p.env.t.Helper()
	return p.run(filepath.Join(p.bin, "kubectl-chartwright"), stdin, args)
}

// Kubectl runs kubectl, which finds the plugin.
func (p *User) Kubectl(args ...string) Output {
	p.env.t.Helper()
	return p.KubectlWith("", args...)
}

// KubectlWith is Kubectl with a standard input.
func (p *User) KubectlWith(stdin string, args ...string) Output {
	p.env.t.Helper()
	return p.run(shared.kubectl, stdin, args)
}

func (p *User) run(program, stdin string, args []string) Output {
	p.env.t.Helper()
	ctx, cancel := context.WithTimeout(p.env.t.Context(), deadline)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(shortLived(), "KUBECONFIG="+p.kubeconfig, "KUBECACHEDIR="+p.cache, "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	code, ran := exitCode(err)
	if !ran || ctx.Err() != nil {
		p.env.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, &stdout, &stderr)
	}
	return Output{code, stdout.String(), stderr.String()}
}
