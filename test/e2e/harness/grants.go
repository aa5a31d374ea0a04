package harness

import (
	"context"
	"errors"
	"io"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// grant grants an operator's account exactly what "chartwright rbac" prints for
// the operator's kinds, except Options.Missing.
func (e *Env) grant(options Options) {
	e.t.Helper()
	args := []string{"rbac", "--strict"}
	if options.Watches != "" {
		args = append(args, "--watches-file", options.Watches)
	}
	if options.ChartsDir != "" {
		args = append(args, "--charts-dir", options.ChartsDir)
	}
	for _, arg := range options.Args {
		if strings.HasPrefix(arg, "--charts-dir-") {
			args = append(args, arg)
		}
	}
	if options.ChartKinds != "" {
		args = append(args, "--chart-kinds", "--install-crds")
		if options.Watches == "" {
			args = append(args, "--watches-file", options.ChartKinds)
		}
	}
	if options.Namespaced {
		args = append(args, "--namespaced")
	}
	printed, err := command{path: options.Program, args: args}.run(e.t.Context())
	e.must(err)
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(printed), 4096)
	for {
		var role rbacv1.ClusterRole
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			e.t.Fatalf("chartwright rbac: %v", err)
		}
		role.Rules = without(role.Rules, options.Missing)
		// Several operators may share an account.
		role.ObjectMeta = metav1.ObjectMeta{GenerateName: options.Account.name + "-"}
		if role.Kind == "Role" {
			e.bindRole(options.Account, role.Rules)
		} else {
			e.bindClusterRole(options.Account, role)
		}
		shared.granted.record(options.Account.User(), role.Rules, options.Missing)
	}
}

// Grant binds the Role of an operator with Options.Namespaced in this
// environment's namespace, too.
func (e *Env) Grant(o *Operator) {
	e.t.Helper()
	e.grant(o.options)
}

// AllowDenials accepts that the API server denies requests of this operator.
func (o *Operator) AllowDenials() *Operator {
	shared.granted.record(o.User(), nil, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
	return o
}

// Grants are rules for the test's namespace, and for the whole cluster.
type Grants struct{ InNamespace, ClusterWide []rbacv1.PolicyRule }

// grantRules grants the account permissions that do not come from "chartwright
// rbac".
func (e *Env) grantRules(a Account, grants Grants) {
	e.t.Helper()
	e.bindRole(a, grants.InNamespace)
	e.bindClusterRole(a, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"}, Rules: grants.ClusterWide})
	shared.granted.record(a.User(), grants.InNamespace, nil)
	shared.granted.record(a.User(), grants.ClusterWide, nil)
}

// noteSystem records the permissions of System in config/rbac.
func (e *Env) noteSystem() {
	e.t.Helper()
	role, err := e.Typed.RbacV1().ClusterRoles().Get(e.t.Context(), managerRole, metav1.GetOptions{})
	e.must(err)
	shared.granted.record(System.User(), role.Rules, nil)
}

// without returns the rules without the missing permissions.
func without(rules, missing []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	left := make([]rbacv1.PolicyRule, 0, len(rules))
	for _, rule := range rules {
		left = append(left, permissions.Allowed(missing, rule)...)
	}
	return left
}

// singles splits a rule into rules for one API group and one resource each.
func singles(rule rbacv1.PolicyRule) []rbacv1.PolicyRule { return permissions.Allowed(nil, rule) }

// bindClusterRole creates a ClusterRole and binds it to the account.
func (e *Env) bindClusterRole(a Account, role rbacv1.ClusterRole) {
	e.t.Helper()
	roles, bindings := e.Typed.RbacV1().ClusterRoles(), e.Typed.RbacV1().ClusterRoleBindings()
	created, err := roles.Create(e.t.Context(), &role, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return roles.Delete(ctx, created.Name, metav1.DeleteOptions{}) })
	_, err = bindings.Create(e.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: created.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: created.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, created.Name, metav1.DeleteOptions{}) })
	e.waitAllowed(a, "", role.Rules...)
}

// bindRole creates a Role in the test's namespace and binds it to the account.
func (e *Env) bindRole(a Account, rules []rbacv1.PolicyRule) {
	e.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"}, Rules: rules}
	created, err := e.Typed.RbacV1().Roles(e.Namespace).Create(e.t.Context(), role, metav1.CreateOptions{})
	e.must(err)
	_, err = e.Typed.RbacV1().RoleBindings(e.Namespace).Create(e.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: created.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: created.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.waitAllowed(a, e.Namespace, rules...)
}
