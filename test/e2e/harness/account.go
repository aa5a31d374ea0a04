package harness

import (
	"context"
	"fmt"
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What config/default installs.
const (
	// SystemNamespace is where operators log in, and where their leases are.
	SystemNamespace = "chartwright-system"
	systemAccount   = "chartwright-controller-manager"
	managerRole     = "chartwright-manager-role"
	leaderRole      = "chartwright-leader-election-role"
)

// Account is whom an operator logs in as.
type Account struct {
	namespace, name string
}

// System is the ServiceAccount of config/rbac, with no rights but those.
var System = Account{SystemNamespace, systemAccount}

// User is the account's name in the audit log.
func (a Account) User() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, a.name)
}

// NewAccount makes a ServiceAccount for the test alone, beside System, with
// the rules of config/rbac, the rules that all the test's kinds need, and more.
func (e *Env) NewAccount(more ...rbacv1.PolicyRule) Account {
	e.t.Helper()
	ctx := e.t.Context()
	account := Account{SystemNamespace, e.Namespace}
	accounts := e.Typed.CoreV1().ServiceAccounts(account.namespace)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: account.meta()}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return accounts.Delete(ctx, account.name, metav1.DeleteOptions{})
	})

	extra := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account.name}, Rules: more}
	for _, kind := range e.kinds {
		extra.Rules = append(extra.Rules, kind.rules()...)
	}
	_, err = e.Typed.RbacV1().ClusterRoles().Create(ctx, extra, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return e.Typed.RbacV1().ClusterRoles().Delete(ctx, extra.Name, metav1.DeleteOptions{})
	})
	e.bind(account, extra.Name)
	e.bind(account, managerRole)
	e.bindLeases(account)
	e.waitAllowed(account)
	return account
}

func (a Account) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: a.name} }

func (a Account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name}}
}

// bind gives the account the rules of a ClusterRole.
func (e *Env) bind(a Account, role string) {
	e.t.Helper()
	bindings := e.Typed.RbacV1().ClusterRoleBindings()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.name + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   a.subjects(),
	}
	_, err := bindings.Create(e.t.Context(), binding, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, binding.Name, metav1.DeleteOptions{}) })
}

// bindLeases gives the account the rules of the leader election.
func (e *Env) bindLeases(a Account) {
	e.t.Helper()
	bindings := e.Typed.RbacV1().RoleBindings(a.namespace)
	_, err := bindings.Create(e.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: a.meta(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: leaderRole},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, a.name, metav1.DeleteOptions{}) })
}

// waitAllowed waits until the API server goes by the new bindings.
func (e *Env) waitAllowed(a Account) {
	e.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.User(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "coordination.k8s.io", Resource: "leases", Verb: "create", Namespace: a.namespace,
		},
	}}
	e.Wait("account "+a.User()+" to have its rights", func(ctx context.Context) error {
		answer, err := e.Typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("not allowed: %s", answer.Status.Reason)
		}
		return err
	})
}

// kubeconfig writes a kubeconfig for the account and returns its path.
func (e *Env) kubeconfig(a Account) string {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "kubeconfig")
	_, err := command{path: shared.program, args: []string{
		"kubeconfig", "--dir", shared.dir, "--serviceaccount", a.namespace + "/" + a.name, "--out", file,
	}}.run(e.t.Context())
	e.must(err)
	return file
}
