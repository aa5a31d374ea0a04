package helm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// ensureNamespace makes the release's namespace, if it is asked to and there is
// none. One that was there before is nobody's to remove afterwards. It is made
// in the operator's own name, for an account of the release would be in it.
func (c *Client) ensureNamespace(ctx context.Context, r Request) error {
	if !r.CreateNamespace {
		return nil
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        r.Namespace,
		Labels:      map[string]string{api.LabelCreatedFor: string(r.Owner.UID)},
		Annotations: map[string]string{api.AnnotationOwner: r.Owner.String()},
	}}
	_, err := c.kubernetes.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: api.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the release's namespace: %w", err)
	}
	return nil
}

// removeNamespace deletes the release's namespace, if it was made for it and
// holds no other release. It is called while the release's record is there, so
// that it is called again if the process ends.
func (c *Client) removeNamespace(ctx context.Context, r Request) error {
	if !r.CreateNamespace {
		return nil
	}
	namespaces := c.kubernetes.CoreV1().Namespaces()
	namespace, err := namespaces.Get(ctx, r.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the release's namespace: %w", err)
	case !createdFor(namespace, r.Owner) || namespace.DeletionTimestamp != nil:
		return nil
	}
	others := c.index.Releases(r.Namespace)
	delete(others, r.Release)
	if len(others) > 0 {
		r.Notifier.Warn(api.EventNamespaceKept, fmt.Sprintf("Namespace %s was made for this release and stays, since other releases are in it: %s", r.Namespace, strings.Join(slices.Sorted(maps.Keys(others)), ", ")))
		return nil
	}
	err = namespaces.Delete(ctx, r.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &namespace.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the release's namespace: %w", err)
	}
	return nil
}

// createdFor tells whether a namespace was made for the owner's release, maybe
// from before the owner was restored from a backup.
func createdFor(namespace *corev1.Namespace, owner apply.Owner) bool {
	made := namespace.Labels[api.LabelCreatedFor]
	return made == string(owner.UID) || made != "" && namespace.Annotations[api.AnnotationOwner] == owner.String()
}
