package permissions_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/testenv"
)

func TestDerive_OnAPIServer(t *testing.T) {
	env := testenv.Start(t)
	t.Run("names and scopes are those of the server", func(t *testing.T) { namesAndScopes(t, env.Config) })
	t.Run("what a chart grants can be made, and no right less", func(t *testing.T) { grantsOnAServer(t, env.Config) })
}

// namesAndScopes derives rules for charts of every kind in the API server.
func namesAndScopes(t *testing.T, config *rest.Config) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[schema.GroupKind]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			gk := schema.GroupKind{Group: cmp.Or(r.Group, gv.Group), Kind: r.Kind}
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "delete") || seen[gk] {
				continue
			}
			seen[gk] = true
			kind := kindOf(t, files{"templates/a.yaml": "{{ if .Values.never }}\n" + object(list.GroupVersion, r.Kind) + "{{ end }}"}, "rbac: [{template: templates/a.yaml}]")
			report := derive(t, permissions.Options{Namespaced: true}, kind)
			var have []rbacv1.PolicyRule
			for _, rule := range report.Rules {
				if strings.HasPrefix(rule.Why, "chart shop: ") || strings.Contains(rule.Why, "; chart shop: ") {
					have = append(have, rule.PolicyRule)
				}
				if strings.Contains(rule.Why, "no kind of Kubernetes") {
					t.Errorf("%s is unknown", gk)
				}
			}
			need := rbacv1.PolicyRule{APIGroups: []string{gk.Group}, Resources: []string{r.Name}, Verbs: []string{"create"}}
			if namespaced := permissions.Allowed(have, need) == nil; namespaced != r.Namespaced {
				t.Errorf("%s: resource %s, namespaced %t; the Role has %v", gk, r.Name, r.Namespaced, have)
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("the API server has only %d kinds", len(seen))
	}
}

const granting = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Name }}"}
rules:
  - {apiGroups: [""], resources: [nodes], resourceNames: [one], verbs: [get]}
  - {apiGroups: [""], resources: [pods/exec], verbs: [create]}
  - {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "{{ .Release.Name }}"}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: ["{{ .Release.Name }}"], verbs: [get, update]}
  - {apiGroups: [apps], resources: ["deployments/scale"], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{ .Release.Name }}"}
subjects: [{kind: ServiceAccount, name: web}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ .Release.Name }}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "{{ .Release.Name }}-others"}
subjects: [{kind: ServiceAccount, name: web}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kube-scheduler"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{{ .Release.Name }}"}
subjects: [{kind: ServiceAccount, name: web, namespace: default}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{{ .Release.Name }}"}
`

// grantsOnAServer applies the rendered objects as a user with the derived rules, and as
// users that lack one of the rules that the chart grants.
func grantsOnAServer(t *testing.T, config *rest.Config) {
	kind := kindOf(t, files{"templates/a.yaml": granting})
	var all []rbacv1.PolicyRule
	for _, rule := range derive(t, permissions.Options{}, kind).Rules {
		all = append(all, permissions.Allowed(nil, rule.PolicyRule)...)
	}
	if err := applyAs(t, config, kind.Chart, "enough", all); err != nil {
		t.Errorf("with all rules: %v", err)
	}
	granted := 0
	for i, rule := range all {
		if len(rule.NonResourceURLs) == 0 && !slices.Contains([]string{"nodes", "pods/exec", "leases", "deployments/scale"}, rule.Resources[0]) && !slices.Contains(rule.Verbs, "bind") {
			continue
		}
		granted++
		less := slices.Delete(slices.Clone(all), i, i+1)
		if err := applyAs(t, config, kind.Chart, fmt.Sprintf("less-%d", i), less); !apierrors.IsForbidden(err) {
			t.Errorf("without %v: error %v, want Forbidden", rule, err)
		}
	}
	if granted != 6 {
		t.Errorf("the chart grants %d of the rules, want 6: %v", granted, all)
	}
}

// applyAs applies the chart's objects, in the order of an install, as a user with rules.
func applyAs(t *testing.T, config *rest.Config, loaded *chart.Chart, name string, rules []rbacv1.PolicyRule) error {
	t.Helper()
	admin := kubernetes.NewForConfigOrDie(config).RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "user-" + name}, Rules: rules}
	if _, err := admin.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	if _, err := admin.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitAllowed(t, config, name)

	rendered, err := loaded.Render(chart.Offline{Release: name, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	user := rest.CopyConfig(config)
	user.Impersonate.UserName = name
	client := dynamic.NewForConfigOrDie(user)
	for _, object := range rendered.Objects {
		resource := client.Resource(object.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(object.GetKind()) + "s"))
		var to dynamic.ResourceInterface = resource
		if !strings.HasPrefix(object.GetKind(), "Cluster") {
			to = resource.Namespace("default")
		}
		if _, err := apply(t, to, object.Unstructured); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func apply(t *testing.T, to dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	return to.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true})
}

// waitAllowed waits until the API server applies a user's new role, by a permission that
// every user has.
func waitAllowed(t *testing.T, config *rest.Config, user string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "list"},
	}}
	reviews := kubernetes.NewForConfigOrDie(config).AuthorizationV1().SubjectAccessReviews()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, testenv.Limit, true, func(ctx context.Context) (bool, error) {
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("wait for the permissions of %s: %v", user, err)
	}
}
