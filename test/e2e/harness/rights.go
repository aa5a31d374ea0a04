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

// grant gives an operator's account exactly what "chartwright rbac" says of its
// watches file, less what the test takes away.
func (e *Env) grant(options Options) {
	e.t.Helper()
	args := []string{"rbac", "--strict"}
	if options.Watches != "" {
		args = append(args, "--watches-file", options.Watches)
	}
	if options.ChartsDir != "" {
		args = append(args, "--charts-dir", options.ChartsDir)
	}
	if options.Namespaced {
		args = append(args, "--namespaced")
	}
	printed, err := command{path: shared.operator, args: args}.run(e.t.Context())
	e.must(err)
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(printed), 4096)
	for {
		var role rbacv1.ClusterRole
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			e.t.Fatalf("chartwright rbac: %v", err)
		}
		role.Rules = without(role.Rules, options.Lacks)
		// Several operators may share an account.
		role.ObjectMeta = metav1.ObjectMeta{GenerateName: options.Account.name + "-"}
		if role.Kind == "Role" {
			e.giveIn(options.Account, role.Rules)
		} else {
			e.give(options.Account, role)
		}
		shared.rights.note(options.Account.User(), role.Rules, options.Lacks)
	}
}

// Grant gives an operator of several namespaces, one of Options.Namespaced, its
// Role in the environment's, too.
func (e *Env) Grant(o *Operator) {
	e.t.Helper()
	e.grant(o.options)
}

// Refusable lets an operator be refused whatever its namespaces do not allow.
func (o *Operator) Refusable() *Operator {
	shared.rights.note(o.User(), nil, []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})
	return o
}

// Rights are rules for the test's namespace, and for the whole cluster.
type Rights struct{ Here, Everywhere []rbacv1.PolicyRule }

// grantThese gives the account rights that do not come from "chartwright rbac".
func (e *Env) grantThese(a Account, rights Rights) {
	e.t.Helper()
	e.giveIn(a, rights.Here)
	e.give(a, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"}, Rules: rights.Everywhere})
	shared.rights.note(a.User(), rights.Here, nil)
	shared.rights.note(a.User(), rights.Everywhere, nil)
}

// noteSystem notes what System may do by config/rbac.
func (e *Env) noteSystem() {
	e.t.Helper()
	role, err := e.Typed.RbacV1().ClusterRoles().Get(e.t.Context(), managerRole, metav1.GetOptions{})
	e.must(err)
	shared.rights.note(System.User(), role.Rules, nil)
}

// without takes rights away from rules.
func without(rules, lacks []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	left := make([]rbacv1.PolicyRule, 0, len(rules))
	for _, rule := range rules {
		left = append(left, permissions.Allowed(lacks, rule)...)
	}
	return left
}

// singles splits a rule by its verbs and resources.
func singles(rule rbacv1.PolicyRule) []rbacv1.PolicyRule { return permissions.Allowed(nil, rule) }

// give binds a ClusterRole that is the account's own.
func (e *Env) give(a Account, role rbacv1.ClusterRole) {
	e.t.Helper()
	roles, bindings := e.Typed.RbacV1().ClusterRoles(), e.Typed.RbacV1().ClusterRoleBindings()
	made, err := roles.Create(e.t.Context(), &role, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return roles.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	_, err = bindings.Create(e.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: made.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	e.waitAllowed(a, "", role.Rules...)
}

// giveIn binds a Role in the test's namespace.
func (e *Env) giveIn(a Account, rules []rbacv1.PolicyRule) {
	e.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"}, Rules: rules}
	made, err := e.Typed.RbacV1().Roles(e.Namespace).Create(e.t.Context(), role, metav1.CreateOptions{})
	e.must(err)
	_, err = e.Typed.RbacV1().RoleBindings(e.Namespace).Create(e.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: made.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: made.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.waitAllowed(a, e.Namespace, rules...)
}
