package harness

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// As returns the same part of the cluster for a user to whom RBAC allows only
// what the test binds and what all authenticated users may do. Kubectl and Helm
// still run as an admin.
func (e *Env) As(user string) *Env {
	e.t.Helper()
	config := rest.CopyConfig(shared.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	as := *e
	var err error
	as.Typed, err = kubernetes.NewForConfig(config)
	e.must(err)
	as.Dynamic, err = dynamic.NewForConfig(config)
	e.must(err)
	return &as
}

// EditKinds creates a ClusterRole like the generated editor roles, and returns
// its name. It allows reading and changing objects of the test's kinds so far.
func (e *Env) EditKinds() string {
	e.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: e.Namespace + "-"}}
	for _, kind := range e.kinds {
		role.Rules = append(role.Rules, kind.On("get", "list", "watch", "create", "update", "patch", "delete"))
	}
	created, err := e.Typed.RbacV1().ClusterRoles().Create(e.t.Context(), role, metav1.CreateOptions{})
	e.must(err)
	e.cleanup(func(ctx context.Context) error {
		return e.Typed.RbacV1().ClusterRoles().Delete(ctx, created.Name, metav1.DeleteOptions{})
	})
	return created.Name
}

// Bind binds ClusterRoles to a user in the environment's namespace. It needs an
// admin's environment.
func (e *Env) Bind(user string, roles ...string) {
	e.t.Helper()
	for _, name := range roles {
		_, err := e.Typed.RbacV1().RoleBindings(e.Namespace).Create(e.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		e.must(err)
	}
}

// Allowed queries the API server whether a user is authorized. An empty
// namespace means all namespaces. It needs an admin's environment.
func (e *Env) Allowed(ctx context.Context, user, namespace, verb, group, resource string) (bool, error) {
	answer, err := e.Typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
