package main

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Accounts of the measured processes. Each account is a separate user in the
// audit log. They have all permissions, because permissions are not measured.
const (
	systemNamespace = "bench-system"
	operatorAccount = "operator"
	floorAccount    = "floor"
)

func userOf(account string) string {
	return "system:serviceaccount:" + systemNamespace + ":" + account
}

func (c *cluster) whoAmI(ctx context.Context) (string, error) {
	review, err := c.typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// prepare creates the namespaces, the accounts and the kind.
func (c *cluster) prepare(ctx context.Context) error {
	places := make([]string, 0, namespaces+1)
	places = append(places, systemNamespace)
	for i := range namespaces {
		places = append(places, namespace(i))
	}
	for _, place := range places {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}}
		if _, err := c.typed.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, account := range []string{operatorAccount, floorAccount} {
		if err := c.makeAccount(ctx, account); err != nil {
			return err
		}
	}
	return c.define(ctx, definition(group, kind, resource))
}

func (c *cluster) makeAccount(ctx context.Context, account string) error {
	meta := metav1.ObjectMeta{Namespace: systemNamespace, Name: account}
	if _, err := c.typed.CoreV1().ServiceAccounts(systemNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: systemNamespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: systemNamespace, Name: account}},
	}
	_, err := c.typed.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// define creates CRDs and waits until they are served.
func (c *cluster) define(ctx context.Context, crds ...*unstructured.Unstructured) error {
	client := c.dynamic.Resource(definitions)
	for _, crd := range crds {
		if _, err := client.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := c.awaitEstablished(ctx, crd.GetName()); err != nil {
			return fmt.Errorf("wait for the kind %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

func (c *cluster) awaitEstablished(ctx context.Context, name string) error {
	client := c.dynamic.Resource(definitions)
	byName := fields.OneTermEqualSelector("metadata.name", name).String()
	_, err := watchtools.UntilWithSync(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = byName
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = byName
			return client.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		crd, ok := event.Object.(*unstructured.Unstructured)
		return ok && conditionTrue(crd, "Established"), nil
	})
	return err
}

// foreignKinds returns CRDs of unused kinds, as many clusters have.
func foreignKinds(count int) []*unstructured.Unstructured {
	list := make([]*unstructured.Unstructured, count)
	for i := range list {
		list[i] = definition(fmt.Sprintf("g%02d.foreign.test", i/10), fmt.Sprintf("Thing%03d", i), fmt.Sprintf("thing%03ds", i))
	}
	return list
}
