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
	systemNamespace  = "chartwright-system"
	systemAccount    = "chartwright-controller-manager"
	managerRole      = "chartwright-manager-role"
	leaderRole       = "chartwright-leader-election-role"
	accountOfTheTest = "operator"
)

// Account is whom an operator logs in as.
type Account struct {
	namespace, name string
}

// System is the ServiceAccount of config/rbac, with no rights but those.
var System = Account{systemNamespace, systemAccount}

// User is the account's name in the audit log.
func (a Account) User() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, a.name)
}

// NewAccount makes a ServiceAccount for the test alone, with the rules of
// config/rbac, the rules that all the test's kinds need, and more.
func (e *Env) NewAccount(more ...rbacv1.PolicyRule) Account {
	e.t.Helper()
	return e.NewAccountNamed(accountOfTheTest, more...)
}

// NewAccountNamed is NewAccount for tests with several.
func (e *Env) NewAccountNamed(name string, more ...rbacv1.PolicyRule) Account {
	e.t.Helper()
	ctx := e.t.Context()
	account := Account{e.Namespace, name}
	_, err := e.Typed.CoreV1().ServiceAccounts(e.Namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	e.must(err)

	extra := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-" + name}, Rules: more}
	for _, kind := range e.kinds {
		extra.Rules = append(extra.Rules, kind.rules()...)
	}
	_, err = e.Typed.RbacV1().ClusterRoles().Create(ctx, extra, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return e.Typed.RbacV1().ClusterRoles().Delete(ctx, extra.Name, metav1.DeleteOptions{})
	})
	e.bindClusterRole(account, extra.Name)
	e.bindClusterRole(account, managerRole)
	e.allowLeases(account)
	e.waitAllowed(account)
	return account
}

func (a Account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name}}
}

func (e *Env) bindClusterRole(a Account, role string) {
	e.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.namespace + "-" + a.name + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   a.subjects(),
	}
	_, err := e.Typed.RbacV1().ClusterRoleBindings().Create(e.t.Context(), binding, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return e.Typed.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
	})
}

// allowLeases gives the account, in its own namespace, what the operator has
// in the system's.
func (e *Env) allowLeases(a Account) {
	e.t.Helper()
	ctx := e.t.Context()
	original, err := e.Typed.RbacV1().Roles(systemNamespace).Get(ctx, leaderRole, metav1.GetOptions{})
	e.must(err)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: a.name + "-leases"}, Rules: original.Rules}
	_, err = e.Typed.RbacV1().Roles(e.Namespace).Create(ctx, role, metav1.CreateOptions{})
	e.must(err)
	_, err = e.Typed.RbacV1().RoleBindings(e.Namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
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
