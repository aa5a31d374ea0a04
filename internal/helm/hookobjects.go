package helm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// Helm leaves the objects that hooks have created, unless a delete policy says
// otherwise. When a custom resource is deleted, they are deleted after the delete
// hooks have run, which may need them, and before the records, which name them.

// holdsData are the kinds that are never deleted for having been made by a hook.
var holdsData = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"},
	{Kind: "PersistentVolume"},
	{Kind: "Namespace"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// deleteHookObjects deletes what the hooks of any stored revision have created.
// An object is deleted if a record names it and it has the label that the
// operator puts on hooks. The label proves it, so that the record need not verify.
func (r *run) deleteHookObjects(request Request, history []release.Record) error {
	if !request.Deleting || !request.Uninstall.DeletesHookObjects() {
		return nil
	}
	if err := r.readHooks(history); err != nil {
		return err
	}
	for _, o := range r.hookObjects(request) {
		err := r.kube.unhook(o)
		if apierrors.IsForbidden(err) {
			// The kind may be of an older chart, and the role of the newest. What a
			// hook has left must not hold up the deletion.
			r.kube.notifier.Warn(api.EventObjectLeft, fmt.Sprintf("%s, which a hook created, is not deleted: %v", apply.Describe(o.Unstructured), err))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unhook deletes an object if a hook of the release has created it.
func (k *kubeClient) unhook(o apply.Object) error {
	live, err := k.objects.Get(k.ctx, o)
	if err != nil || live == nil || !k.madeByHook(live) {
		return err
	}
	if err := k.objects.DeleteUID(k.ctx, o, live.GetUID(), metav1.DeletePropagationBackground); err != nil {
		return err
	}
	k.unhooked = append(k.unhooked, o)
	return nil
}

// readHooks reads the records that were not read yet and may have hooks.
func (r *run) readHooks(history []release.Record) error {
	for _, record := range history {
		if _, read := r.driver.Versions[record.Secret]; read || record.NoHooks && record.Genuine() {
			continue
		}
		_, err := r.driver.Get(record.Secret)
		if err != nil && !errors.Is(err, release.ErrDamaged) && !errors.Is(err, driver.ErrReleaseNotFound) {
			return err
		}
	}
	return nil
}

// hookObjects returns the objects of all hooks that may be deleted: Jobs and Pods
// first, because they may use the others.
func (r *run) hookObjects(request Request) []apply.Object {
	var found []apply.Object
	seen := map[apply.Key]bool{}
	for _, hook := range r.driver.AllHooks {
		list, err := r.kube.builder.build(strings.NewReader(hook.Manifest))
		if err != nil {
			// The hook cannot have been created.
			continue
		}
		for _, info := range list {
			o := object(info)
			key := apply.KeyOf(o)
			secret := key.GroupKind() == schema.GroupKind{Kind: "Secret"}
			if seen[key] || slices.Contains(holdsData, key.GroupKind()) || secret && !request.Uninstall.DeletesHookSecrets() || apply.HasKeepPolicy(o) {
				continue
			}
			seen[key] = true
			found = append(found, o)
		}
	}
	rank := func(o apply.Object) int {
		if kind := o.GetKind(); kind == "Job" || kind == "Pod" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b apply.Object) int { return cmp.Compare(rank(a), rank(b)) })
	return found
}

// madeByHook reports whether a hook of the release has created an object, which
// is not to be kept.
func (k *kubeClient) madeByHook(live *metav1.PartialObjectMetadata) bool {
	return live.Labels[api.LabelHookOwnerUID] != "" && live.Labels[api.LabelOwnerUID] == "" && apply.CheckOwnership(live, k.owner) == nil &&
		!apply.HasKeepPolicy(live) && live.DeletionTimestamp == nil
}
