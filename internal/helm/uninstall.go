package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// search watches all kinds with objects that have the owner's label, as far as the
// kind's rules allow them. A new process needs it for a release whose records are
// missing or must not be used. It sends one request for each kind of the server, and
// skips kinds that the operator may not list.
func (r *run) search() error {
	lists, err := r.client.config.Clientset.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("read the server's kinds: %w", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch", "delete"}}, lists)
	allowed := r.kube.allow
	// An operator that watches a list of namespaces has no permissions outside of them,
	// except for what the rules name.
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

// owns reports whether objects of a resource with the owner's label exist: in all
// namespaces if the kind's rules allow objects there, otherwise in the namespace of the
// release.
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

// errHooksRefused reports that the account that must run the hooks is unknown.
var errHooksRefused = fmt.Errorf("the release has delete hooks, but the operator no longer knows which account runs them, because the kind was removed: "+
	"serve the kind again, or skip the hooks by the annotation %s=true", api.AnnotationUninstallDisableHooks)

// ErrLeftBehind marks an uninstall after which release records or objects of the
// release still exist.
var ErrLeftBehind = errors.New("release records or objects still exist after the uninstall")

// Uninstall runs the delete hooks, deletes the objects and then all records. It can be
// run again after an interruption. Objects of kinds that the server no longer serves
// count as deleted.
//
// Uninstall skips hooks, and emits a warning, if they cannot run: the namespace is
// being deleted, or the service account that would run them does not exist. Without the
// service account, it deletes with the operator's own account, and only objects that
// the inventory holds for the owner. It also skips hooks if the newest record is not
// verified.
func (c *Client) Uninstall(ctx context.Context, r Request) error {
	err := c.uninstall(ctx, r)
	if err == nil || errors.Is(err, ErrWaiting) || errors.Is(err, ErrOrphaned) || errors.Is(err, ErrProtected) || errors.Is(err, ErrApprovalRequired) || r.DisableHooks && r.ServiceAccount == "" {
		return err
	}
	var why string
	switch {
	case apply.AnswerOf(err) == apply.Terminating:
		why = fmt.Sprintf("namespace %s is being deleted", r.Namespace)
	case c.accountGone(ctx, r):
		// Helm turns some errors into text, so any error may have this cause.
		why = fmt.Sprintf("service account %s/%s does not exist", r.Namespace, r.ServiceAccount)
	default:
		return err
	}
	r.Notifier.Warn(api.EventHooksSkipped, "The chart's delete hooks are skipped because "+why)
	if r.ServiceAccount != "" {
		// The rules for the operator's own permissions do not include objects that hooks
		// created with the service account.
		r.Uninstall.HookObjects = watches.HookObjectsKeep
	}
	r.DisableHooks, r.ServiceAccount, r.OwnedOnly = true, "", r.OwnedOnly || r.ServiceAccount != ""
	return c.uninstall(ctx, r)
}

func (c *Client) uninstall(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		run.kube.uninstalls, run.kube.builder.skipUnknown = true, true
		run.kube.keepNamespace = sync.OnceValue(run.keepNamespace)
		history := run.history()
		store := &uninstallDriver{Driver: run.driver, kube: run.kube, noWait: !r.WaitForDelete && r.MoveTo == "", hooks: !r.DisableHooks,
			before: sync.OnceValue(func() error { return run.sweepBeforeRecords(history) })}
		run.config.Releases = engine.NewStorage(store)
		if len(history) > 0 && !belongs(history[0], r.Owner) {
			// Another owner has a release of this name now.
			history = nil
		}
		if err := run.refuseUninstall(history); err != nil {
			return err
		}
		if len(history) == 0 || r.OwnedOnly {
			if err := run.search(); err != nil {
				return err
			}
		}
		if len(history) > 1 {
			// Helm deletes only the objects of the newest revision.
			if err := run.findLeftovers(history); err != nil {
				return err
			}
		}
		var err error
		if len(history) > 0 {
			err = run.uninstall(store)
		}
		if run.kube.failedHook != nil {
			// Helm turns some errors into text.
			err = run.kube.failedHook
		}
		left := run.kube.inventory.OwnedBy(r.Owner.UID)
		if err == nil {
			err = run.sweepAfter(history)
		}
		if err == nil && r.WaitForDelete {
			err = run.kube.waitUntilGone(left, r.Timeout)
		}
		if len(run.kube.remaining) > 0 {
			// Helm turns the error into text, and has deleted the records.
			err = fmt.Errorf("%w: %s", ErrWaiting, strings.Join(run.kube.remaining, ", "))
		}
		if err == nil && run.driver.WriteErr == nil {
			c.config.Inventory.Forget(r.Owner.UID)
		}
		return err
	})
}

// sweepBeforeRecords deletes what a later uninstall cannot find without the records.
func (r *run) sweepBeforeRecords(history []release.Record) error {
	if err := r.deleteHookObjects(history); err != nil {
		r.kube.failedHook = err
		return err
	}
	// Without the records, nothing finds the objects that stay.
	r.kube.reportLeft()
	return r.removeNamespace()
}

// sweepAfter deletes what Helm's action has left. Without a record, this includes what it
// otherwise deletes because of the record, and uninstallDriver did not remove the namespace.
func (r *run) sweepAfter(history []release.Record) error {
	err := r.kube.sweep(nil)
	if err == nil && len(history) == 0 {
		if err = r.kube.sweepClaimed(); err == nil {
			err = r.removeNamespace()
		}
	}
	if err == nil {
		r.kube.reportLeft()
	}
	return err
}

// uninstall runs Helm's action, and then deletes the remaining records. Helm deletes a
// record by the release and revision in its content, not by the name of its Secret.
func (r *run) uninstall(store *uninstallDriver) error {
	uninstall := engine.NewUninstall(r.config, r.WaitForDelete)
	uninstall.Timeout = r.Timeout
	uninstall.IgnoreNotFound = true
	uninstall.DisableHooks = r.DisableHooks
	uninstall.Description = r.Description
	var refused error
	store.read = func(newest *engine.Release) error {
		if err := r.refuseProtected(newest); err != nil {
			refused = err
			return err
		}
		if uninstall.DisableHooks || !hasHooks(newest, engine.HookPreDelete, engine.HookPostDelete) {
			return nil
		}
		if why := r.driver.Untrusted(r.driver.KeyOf(newest)); why != nil {
			// Helm reads this field after it has read the record.
			uninstall.DisableHooks, store.hooks = true, false
			r.Notifier.Warn(api.EventHooksSkipped, fmt.Sprintf("The chart's delete hooks are skipped: %v", why))
			return nil
		}
		if r.RefuseHooks {
			refused = errHooksRefused
		}
		return refused
	}
	// Helm returns no error if it cannot read the records.
	if _, err := uninstall.Run(r.Release); err != nil || r.driver.ReadErr != nil || refused != nil {
		err = cmp.Or(refused, err, r.driver.ReadErr)
		if r.kube.deleteErr != nil {
			// Helm's error does not contain the cause.
			err = fmt.Errorf("delete the objects of the release: %w", r.kube.deleteErr)
		}
		if storeErr := store.mark(); storeErr != nil {
			// The uninstall has failed because of err.
			err = fmt.Errorf("%w; %v", err, storeErr) //nolint:errorlint // as above
		}
		return err
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

// belongs reports whether a record belongs to the owner's release. The record may be
// older than a restore of the owner from a backup, or created by the operator-sdk.
func belongs(record release.Record, owner apply.Owner) bool {
	return record.OwnerUID == owner.UID || record.Owner == owner.String() && record.Operator == owner.Operator ||
		inheritedBy(record, owner)
}

// uninstallDriver is the storage driver of an uninstall.
//
// It deletes records only after everything else has succeeded, so that a failed
// uninstall is repeated. Helm deletes them even if a post-delete hook fails, and the
// hook would never run again.
//
// Helm sets the status of the newest record to uninstalling before it deletes objects.
// If the uninstall waits for nothing, the driver skips this write and makes up for it
// only after a failure. Before a move it always writes the status: after an interruption,
// the deployed release would otherwise wait for another approval.
type uninstallDriver struct {
	*release.Driver
	kube *kubeClient
	// noWait reports that the uninstall neither waits for the deletion of objects nor needs
	// the status after an interruption. hooks reports that hooks run.
	noWait, hooks bool
	// read is called with the newest release after it was read. Its error ends the uninstall.
	read func(*engine.Release) error
	// before is called before a record is deleted.
	before func() error
	// unmarked is the release whose status was not written.
	unmarked *engine.Release
}

// Query answers like release.Driver, and passes the newest release to read.
func (d *uninstallDriver) Query(labels map[string]string) ([]*engine.Release, error) {
	found, err := d.Driver.Query(labels)
	if err == nil && !d.IsStub(found[0]) {
		err = d.read(found[0])
	}
	return found, err
}

// Update writes a record, or skips the write of the status uninstalling.
func (d *uninstallDriver) Update(key string, rls *engine.Release) error {
	waits := !d.noWait || d.hooks && hasHooks(rls, engine.HookPreDelete, engine.HookPostDelete)
	if !waits && rls.Info.Status == engine.StatusUninstalling {
		d.unmarked = rls
		return nil
	}
	return d.Driver.Update(key, rls)
}

// mark writes the status that Update has skipped.
func (d *uninstallDriver) mark() error {
	if d.unmarked == nil {
		return nil
	}
	d.unmarked.Info.Status = engine.StatusUninstalling
	err := d.Driver.Update(d.KeyOf(d.unmarked), d.unmarked)
	if errors.Is(err, release.ErrStale) {
		// The record no longer exists, or belongs to another release.
		return nil
	}
	return err
}

// Delete deletes a record, unless a hook failed.
func (d *uninstallDriver) Delete(key string) (*engine.Release, error) {
	if d.kube.failedHook != nil {
		return nil, d.kube.failedHook
	}
	if err := d.before(); err != nil {
		return nil, err
	}
	return d.Driver.Delete(key)
}

// hasHooks reports whether a release has hooks for one of the events.
func hasHooks(rls *engine.Release, events ...engine.HookEvent) bool {
	return slices.ContainsFunc(rls.Hooks, func(hook *engine.Hook) bool {
		return sets.New(hook.Events...).HasAny(events...)
	})
}

// accountGone reports whether the service account of a request is missing. If that
// cannot be checked, it returns false.
func (c *Client) accountGone(ctx context.Context, r Request) bool {
	if r.ServiceAccount == "" {
		return false
	}
	account, err := c.config.Clientset.CoreV1().ServiceAccounts(r.Namespace).Get(ctx, r.ServiceAccount, metav1.GetOptions{})
	return apply.AnswerOf(err) == apply.Gone || err == nil && account.DeletionTimestamp != nil
}
