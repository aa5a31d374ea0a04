package permissions

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// forbidden returns an error of the API server with a message.
func forbidden(text string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New(text))
}

func TestRefusals(t *testing.T) {
	const user = "system:serviceaccount:system:operator"
	got := func(namespace string, r rbacv1.PolicyRule) []Refusal {
		return []Refusal{{user: user, rule: r, namespace: namespace}}
	}
	for _, test := range []struct {
		name string
		err  error
		want []Refusal
	}{
		{
			"in a namespace", forbidden(`User "` + user + `" cannot patch resource "deployments" in API group "apps" in the namespace "shop"`),
			got("shop", rule("apps", "deployments", "patch")),
		},
		{
			"in all, of the core group", forbidden(`User "` + user + `" cannot list resource "nodes" in API group "" at the cluster scope`),
			got("", rule("", "nodes", "list")),
		},
		{
			"a subresource, twice, in another error", fmt.Errorf("a: %w", forbidden(
				`User "`+user+`" cannot get resource "pods/log" in API group "" in the namespace "shop": User "`+user+`" cannot get resource "pods/log" in API group "" in the namespace "shop"`)),
			got("shop", rule("", "pods/log", "get")),
		},
		{"a quota", forbidden("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"), nil},
		{"admission", forbidden("violates PodSecurity \"restricted:latest\": privileged"), nil},
		{"the escalation check", forbidden(`user "` + user + `" (groups=["a"]) is attempting to grant RBAC permissions not currently held:`), nil},
		{"another error that quotes it", errors.New(`User "` + user + `" cannot get resource "pods" in API group ""`), nil},
		{"none", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Refusals(test.err), cmp.AllowUnexported(Refusal{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
