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

// Person is somebody who works in the test's namespace with kubectl and its
// plugin, and may do there what a Role says.
type Person struct {
	env        *Env
	account    Account
	kubeconfig string
	// bin holds the plugin, by the names that kubectl looks for; cache is what
	// kubectl remembers of the server.
	bin, cache string
}

// NewPerson makes a person who has some rights in the test's namespace, and no
// others.
func (e *Env) NewPerson(rules ...rbacv1.PolicyRule) *Person {
	e.t.Helper()
	made, err := e.Typed.CoreV1().ServiceAccounts(e.Namespace).Create(e.t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "person-"},
	}, metav1.CreateOptions{})
	e.must(err)
	account := Account{e.Namespace, made.Name}
	p := &Person{env: e, account: account, bin: e.t.TempDir(), cache: e.t.TempDir()}
	for _, name := range []string{"kubectl-chartwright", "kubectl_complete-chartwright"} {
		e.must(os.Symlink(shared.operator, filepath.Join(p.bin, name)))
	}
	if len(rules) > 0 {
		e.giveIn(account, rules)
	}
	p.kubeconfig = e.kubeconfig(account)
	return p
}

// Account is whom the person logs in as.
func (p *Person) Account() Account { return p.account }

// May gives the person rights in all namespaces.
func (p *Person) May(rules ...rbacv1.PolicyRule) {
	p.env.t.Helper()
	p.env.give(p.account, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: p.account.name + "-"}, Rules: rules})
}

// Through makes everything that the person asks go through a proxy.
func (p *Person) Through(proxy *Proxy) {
	p.env.t.Helper()
	p.env.must(proxy.redirect(p.kubeconfig))
}

// On is a rule on the kind alone.
func (k Kind) On(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{k.Group}, Resources: []string{plural(k.Kind)}, Verbs: verbs}
}

// Kubeconfig returns the path of the person's kubeconfig.
func (p *Person) Kubeconfig() string { return p.kubeconfig }

// Said is how a program ended, and what it printed.
type Said struct {
	Code           int
	Stdout, Stderr string
}

// Chartwright runs "kubectl-chartwright". The test's namespace is the context's,
// so that -n is left to the test.
func (p *Person) Chartwright(args ...string) Said {
	p.env.t.Helper()
	return p.run(filepath.Join(p.bin, "kubectl-chartwright"), "", args)
}

// ChartwrightWith is Chartwright with something on its standard input.
func (p *Person) ChartwrightWith(stdin string, args ...string) Said {
	p.env.t.Helper()
	return p.run(filepath.Join(p.bin, "kubectl-chartwright"), stdin, args)
}

// Kubectl runs kubectl, which finds the plugin.
func (p *Person) Kubectl(args ...string) Said {
	p.env.t.Helper()
	return p.run(shared.kubectl, "", args)
}

func (p *Person) run(program, stdin string, args []string) Said {
	p.env.t.Helper()
	ctx, cancel := context.WithTimeout(p.env.t.Context(), 2*deadline)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "KUBECACHEDIR="+p.cache, "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	code, ran := exitCode(err)
	if !ran || ctx.Err() != nil {
		p.env.t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, &stdout, &stderr)
	}
	return Said{code, stdout.String(), stderr.String()}
}
