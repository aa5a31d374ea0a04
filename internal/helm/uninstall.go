package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// search has all kinds watched of which there are objects with the owner's label,
// where the kind's rules allow them. It is for a process that has not seen the
// objects of a release, if the records are gone or must not be relied on. It makes
// one request for each kind that the server has, and skips those that the operator
// may not list.
func (r *run) search() error {
	lists, err := r.client.config.Clientset.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("read the server's kinds: %w", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch", "delete"}}, lists)
	allowed := r.kube.allow
	// An operator that serves some namespaces has no permissions beyond them, save
	// for what the rules name.
	allowed.Everything = allowed.Everything && !r.client.config.Confined
	var found []schema.GroupVersionKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if !resource.Namespaced && !allowed.clusterScoped(gv.WithKind(resource.Kind).GroupKind()) {
				continue
			}
			is, err := r.owns(allowed, gv.WithResource(resource.Name), resource.Namespaced)
			if err != nil {
				return fmt.Errorf("look for objects of the release: %w", err)
			}
			if is {
				found = append(found, gv.WithKind(resource.Kind))
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return r.kube.need(found)
}

// owns reports whether there are objects of a resource with the owner's label: in all
// namespaces if the kind's rules allow objects there, and else in the namespace of
// the release.
func (r *run) owns(allowed allow, resource schema.GroupVersionResource, namespaced bool) (bool, error) {
	options := metav1.ListOptions{LabelSelector: api.LabelOwnerUID + "=" + string(r.Owner.UID), Limit: 1}
	all := r.client.own.objects.Metadata.Resource(resource)
	here := all.Namespace(r.Namespace)
	var list *metav1.PartialObjectMetadataList
	var err error
	if namespaced && !allowed.Everything && !allowed.OtherNamespaces {
		list, err = here.List(r.kube.ctx, options)
	} else if list, err = all.List(r.kube.ctx, options); apierrors.IsForbidden(err) && namespaced {
		list, err = here.List(r.kube.ctx, options)
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return len(list.Items) > 0, nil
}

// ErrLeftBehind marks an uninstall after which release records or objects of the
// release are still there.
var ErrLeftBehind = errors.New("the uninstall left something behind")

// Uninstall runs the delete hooks, deletes the objects and then every record.
// It can be run again wherever an earlier run was cut short. Objects of kinds
// that the server no longer knows count as deleted.
//
// Hooks are skipped, and the request's Warn is told, where they cannot run any
// more: in a namespace that goes, and where the service account is gone in
// whose name they would. Without the account, the operator deletes in its own name
// only the objects that the inventory holds for the owner. Hooks are also skipped
// where the newest record is not what this operator has written.
func (c *Client) Uninstall(ctx context.Context, r Request) error {
	err := c.uninstall(ctx, r)
	if err == nil || errors.Is(err, ErrWaiting) || errors.Is(err, ErrOrphaned) || r.DisableHooks && r.ServiceAccount == "" {
		return err
	}
	var why string
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		why = fmt.Sprintf("namespace %s is being deleted", r.Namespace)
	case c.accountGone(ctx, r):
		// Helm makes a text of some errors, so that it may be any.
		why = fmt.Sprintf("service account %s/%s is gone", r.Namespace, r.ServiceAccount)
	default:
		return err
	}
	r.Notifier.Warn(api.EventHooksSkipped, "The chart's delete hooks are skipped, since "+why)
	if r.ServiceAccount != "" {
		// The operator's own permissions do not cover what hooks have created in
		// the name of the account.
		r.Uninstall.HookObjects = watches.HookObjectsKeep
	}
	r.DisableHooks, r.ServiceAccount, r.OwnedOnly = true, "", r.OwnedOnly || r.ServiceAccount != ""
	return c.uninstall(ctx, r)
}

func (c *Client) uninstall(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		run.kube.uninstalls, run.kube.builder.skipUnknown = true, true
		history := run.history()
		store := &uninstallDriver{Driver: run.driver, kube: run.kube, brief: !r.WaitForDelete, hooks: !r.DisableHooks,
			before: sync.OnceValue(func() error {
				if err := run.deleteHookObjects(history); err != nil {
					run.kube.failedHook = err
					return err
				}
				return c.removeNamespace(ctx, r)
			})}
		run.config.Releases = storage.Init(store)
		if len(history) > 0 && !belongs(history[0], r.Owner) {
			// A release of another owner has the name now.
			history = nil
		}
		if err := run.refuseOrphaned(history); err != nil {
			return err
		}
		if len(history) == 0 || r.OwnedOnly {
			if err := run.search(); err != nil {
				return err
			}
		}
		if len(history) > 1 {
			// Helm deletes only the objects of the newest revision.
			if err := run.findLeftovers(); err != nil {
				return err
			}
		}
		var err error
		if len(history) > 0 {
			err = run.uninstall(store)
		}
		if run.kube.failedHook != nil {
			// Some of Helm's errors contain only its text.
			err = run.kube.failedHook
		}
		left := run.kube.inventory.OwnedBy(r.Owner.UID)
		if err == nil {
			err = run.kube.sweep(nil)
		}
		if err == nil && len(history) == 0 {
			// No record was deleted, before which the namespace would have been.
			run.kube.sweepClaimed()
			err = c.removeNamespace(ctx, r)
		}
		if err == nil && r.WaitForDelete {
			err = run.kube.waitUntilGone(left, r.Timeout)
		}
		if len(run.kube.remaining) > 0 {
			// Helm's error contains only the text. The records are deleted.
			err = fmt.Errorf("%w: %s", ErrWaiting, strings.Join(run.kube.remaining, ", "))
		}
		if err == nil && run.driver.WriteErr == nil {
			c.config.Inventory.Forget(r.Owner.UID)
		}
		return err
	})
}

// uninstall runs Helm's action, and deletes the records that are left after it. Helm
// deletes a record by the release and the revision in its content, and not by its own
// name.
func (r *run) uninstall(store *uninstallDriver) error {
	uninstall := action.NewUninstall(r.config)
	uninstall.Timeout = r.Timeout
	uninstall.IgnoreNotFound = true
	uninstall.DisableHooks = r.DisableHooks
	uninstall.Description = r.Description
	uninstall.Wait = r.WaitForDelete
	store.read = func(newest *helmrelease.Release) {
		why := r.driver.Untrusted(r.driver.KeyOf(newest))
		if why == nil || uninstall.DisableHooks || !hasHooks(newest, helmrelease.HookPreDelete, helmrelease.HookPostDelete) {
			return
		}
		// Helm reads this field after it has read the record.
		uninstall.DisableHooks, store.hooks = true, false
		r.Notifier.Warn(api.EventHooksSkipped, fmt.Sprintf("The chart's delete hooks are skipped: %v", why))
	}
	if _, err := uninstall.Run(r.Release); err != nil || r.driver.ReadErr != nil {
		err = cmp.Or(err, r.driver.ReadErr)
		if r.kube.undeleted != nil {
			// Helm's own error does not contain the cause.
			err = fmt.Errorf("delete the objects of the release: %w", r.kube.undeleted)
		}
		return errors.Join(err, store.mark())
	}
	for _, record := range r.history() {
		if !belongs(record, r.Owner) {
			continue
		}
		if _, err := r.driver.Delete(record.Secret); err != nil {
			return err
		}
	}
	return nil
}

// belongs reports whether a record is of the owner's release, maybe from before the
// owner was restored from a backup, or made by the operator-sdk.
func belongs(record release.Record, owner apply.Owner) bool {
	return record.OwnerUID == owner.UID || record.Owner == owner.String() && record.Operator == owner.Operator ||
		inheritedBy(record, owner)
}

// uninstallDriver is the storage driver of an uninstall.
//
// It keeps the records until all else is done, so that it is done again where it
// was not. Helm deletes them even where one of those hooks fails that run last,
// which would then never run again.
//
// Helm marks the newest record as being uninstalled before anything is deleted.
// Where the record itself is gone a moment later, that write is for nobody: it is
// made only if something fails.
type uninstallDriver struct {
	*release.Driver
	kube *kubeClient
	// brief: nothing is waited for but hooks, if they run.
	brief, hooks bool
	// read is called with the newest record when it was read.
	read func(*helmrelease.Release)
	// before is called before a record is deleted.
	before func() error
	// unmarked is the record that was not marked.
	unmarked *helmrelease.Release
}

// Query answers as the recordDriver does.
func (d *uninstallDriver) Query(labels map[string]string) ([]*helmrelease.Release, error) {
	found, err := d.Driver.Query(labels)
	if err == nil && !d.IsStub(found[0]) {
		d.read(found[0])
	}
	return found, err
}

// Update writes a record back, or notes that it was not.
func (d *uninstallDriver) Update(key string, rls *helmrelease.Release) error {
	waits := !d.brief || d.hooks && hasHooks(rls, helmrelease.HookPreDelete, helmrelease.HookPostDelete)
	if !waits && rls.Info.Status == helmrelease.StatusUninstalling {
		d.unmarked = rls
		return nil
	}
	return d.Driver.Update(key, rls)
}

// mark makes up for the mark, since the record stays.
func (d *uninstallDriver) mark() error {
	if d.unmarked == nil {
		return nil
	}
	d.unmarked.Info.Status = helmrelease.StatusUninstalling
	err := d.Driver.Update(d.KeyOf(d.unmarked), d.unmarked)
	if errors.Is(err, release.ErrStale) {
		// It is gone, or another has it: there is nothing to mark.
		return nil
	}
	return err
}

// Delete deletes a record, unless a hook has failed.
func (d *uninstallDriver) Delete(key string) (*helmrelease.Release, error) {
	if d.kube.failedHook != nil {
		return nil, d.kube.failedHook
	}
	if err := d.before(); err != nil {
		return nil, err
	}
	return d.Driver.Delete(key)
}

// hasHooks reports whether a release has hooks for one of the events.
func hasHooks(rls *helmrelease.Release, events ...helmrelease.HookEvent) bool {
	return slices.ContainsFunc(rls.Hooks, func(hook *helmrelease.Hook) bool {
		return sets.New(hook.Events...).HasAny(events...)
	})
}

// accountGone reports whether the account of a request is not there. Where that
// cannot be found out, it counts as there.
func (c *Client) accountGone(ctx context.Context, r Request) bool {
	if r.ServiceAccount == "" {
		return false
	}
	account, err := c.config.Clientset.CoreV1().ServiceAccounts(r.Namespace).Get(ctx, r.ServiceAccount, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && account.DeletionTimestamp != nil
}
