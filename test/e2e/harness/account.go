package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of objects that config/default installs.
const (
	// SystemNamespace holds the operators' service accounts and leases.
	SystemNamespace = "chartwright-system"
	systemAccount   = "chartwright-controller-manager"
	managerRole     = "chartwright-manager-role"
	leaderRole      = "chartwright-leader-election-role"
)

// Account is the ServiceAccount with which an operator or a User authenticates.
type Account struct {
	namespace, name string
}

// System is the ServiceAccount of config/rbac. It has the permissions of
// config/rbac, and those for the signing key of each operator that uses it.
var System = Account{SystemNamespace, systemAccount}

// User returns the account's user name, as in the audit log.
func (a Account) User() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, a.name)
}

// NewAccount creates a ServiceAccount for this test only. It has the
// permissions for leader election; NewOperator adds the permissions that the
// operator needs.
func (e *Env) NewAccount() Account {
	e.t.Helper()
	ctx := e.t.Context()
	account := Account{SystemNamespace, e.Namespace + "-" + rand.String(3)}
	accounts := e.Typed.CoreV1().ServiceAccounts(account.namespace)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: account.meta()}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return accounts.Delete(ctx, account.name, metav1.DeleteOptions{})
	})
	e.bindLeases(account)
	return account
}

func (a Account) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: a.name} }

func (a Account) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.namespace, Name: a.name}}
}

// bindLeases grants the account the permissions for leader election.
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
	role, err := e.Typed.RbacV1().Roles(a.namespace).Get(e.t.Context(), leaderRole, metav1.GetOptions{})
	e.must(err)
	e.waitAllowed(a, a.namespace, role.Rules...)
	shared.granted.record(a.User(), role.Rules, nil)
}

// bindSigningKey grants the operator's account the permissions for the Secret
// with the signing key, as config/rbac does for an operator named chartwright.
func (e *Env) bindSigningKey(options Options) {
	e.t.Helper()
	ctx, a := e.t.Context(), options.Account
	roles, bindings := e.Typed.RbacV1().Roles(a.namespace), e.Typed.RbacV1().RoleBindings(a.namespace)
	shipped, err := roles.Get(ctx, leaderRole, metav1.GetOptions{})
	e.must(err)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: a.name + "-"}}
	for _, rule := range shipped.Rules {
		if !slices.Contains(rule.Resources, "secrets") {
			continue
		}
		if len(rule.ResourceNames) > 0 {
			rule.ResourceNames = []string{SigningKey(options.Name)}
		}
		role.Rules = append(role.Rules, rule)
	}
	role, err = roles.Create(ctx, role, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return roles.Delete(ctx, role.Name, metav1.DeleteOptions{}) })
	_, err = bindings.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   a.subjects(),
	}, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error { return bindings.Delete(ctx, role.Name, metav1.DeleteOptions{}) })
	e.waitAllowed(a, a.namespace, role.Rules...)
	shared.granted.record(a.User(), role.Rules, nil)
	e.cleanup(func(ctx context.Context) error {
		err := e.Typed.CoreV1().Secrets(a.namespace).Delete(ctx, SigningKey(options.Name), metav1.DeleteOptions{})
		return client.IgnoreNotFound(err)
	})
}

// SigningKey returns the name of the Secret, in SystemNamespace, with an
// operator's signing key.
func SigningKey(operator string) string { return operator + "-signing-key" }

// waitAllowed waits until the API server allows the account what the rules of a
// role allow. The last rule proves that it has observed the role and the binding.
func (e *Env) waitAllowed(a Account, namespace string, rules ...rbacv1.PolicyRule) {
	e.t.Helper()
	for _, rule := range rules[max(0, len(rules)-1):] {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: a.User()}}
		if len(rule.NonResourceURLs) > 0 {
			review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
		} else {
			resource, sub, _ := strings.Cut(rule.Resources[0], "/")
			attributes := &authorizationv1.ResourceAttributes{
				Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Verb: rule.Verbs[0], Namespace: namespace,
			}
			if len(rule.ResourceNames) > 0 {
				attributes.Name = rule.ResourceNames[0]
			}
			review.Spec.ResourceAttributes = attributes
		}
		e.Wait("account "+a.User()+" to have its permissions", func(ctx context.Context) error {
			answer, err := e.Typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("not allowed: %v", rule)
			}
			return err
		})
	}
}

// kubeconfig writes a kubeconfig for the account and returns its path.
func (e *Env) kubeconfig(a Account) string {
	e.t.Helper()
	day := int64(24 * 60 * 60)
	token, err := e.Typed.CoreV1().ServiceAccounts(a.namespace).CreateToken(e.t.Context(), a.name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	e.must(err)
	config, err := clientcmd.LoadFromFile(shared.kubeconfig())
	e.must(err)
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	for _, current := range config.Contexts {
		current.Namespace = a.namespace
	}
	file := filepath.Join(e.t.TempDir(), "kubeconfig")
	e.must(clientcmd.WriteToFile(*config, file))
	return file
}
