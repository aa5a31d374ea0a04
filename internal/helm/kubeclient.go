package helm

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Inventory is the part of the inventory that actions use.
type Inventory interface {
	// Get returns the last known state of an object.
	Get(key apply.Key) (apply.State, bool)
	// SetReleaseNamespace sets the namespace of an owner's release. AddObjects adds
	// objects of the release that may be outside of that namespace.
	SetReleaseNamespace(owner types.UID, namespace string)
	AddObjects(owner types.UID, objects []apply.Key)
	// OwnedBy returns the objects of an owner. ClaimedBy returns the objects outside of
	// the release's namespace that only carry the label of the owner.
	OwnedBy(owner types.UID) []apply.State
	ClaimedBy(owner types.UID) []apply.State
	// ExpectedUID returns the UID of an object that is expected for an owner, or an
	// empty UID.
	ExpectedUID(owner types.UID, key apply.Key) types.UID
	// Intact reports whether an object is unchanged since it was applied for an owner.
	Intact(owner types.UID, key apply.Key) bool
	// Drifted reports whether an object differs from what is expected for an owner.
	Drifted(owner types.UID, key apply.Key) bool
	// Put and Remove record what an action has just written or deleted.
	Put(state apply.State)
	Remove(state apply.State)
	// Expect sets the expected states of all objects of an owner, and ExpectOne that of
	// one object.
	Expect(owner types.UID, objects []apply.State)
	ExpectOne(owner types.UID, state apply.State)
	// JobOutcome returns the outcome of a finished Job with ttlSecondsAfterFinished,
	// empty if the Job has not finished. SetJobOutcome records the outcome of a Job that
	// no longer exists.
	JobOutcome(owner types.UID, key apply.Key, uid types.UID) string
	SetJobOutcome(owner types.UID, key apply.Key, outcome string)
	// JobOutcomes returns the outcomes of the expected Jobs that have finished. Expected
	// returns the expected states of all objects of an owner.
	JobOutcomes(owner types.UID) map[apply.Key]string
	Expected(owner types.UID) ([]apply.State, bool)
	// Forget removes an owner whose release no longer exists.
	Forget(owner types.UID)
	// Kinds returns the kinds of the last call of EnsureWatched.
	Kinds(owner types.UID) []schema.GroupVersionKind
	// EnsureWatched starts to watch the kinds in the namespace of the release. It is
	// called before objects are applied.
	EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error
}

// kubeClient is the engine.Kube of one action. All requests end with the context of
// the action. All methods turn panics into errors, because Helm calls them in its own
// goroutines, where a panic would end the process.
type kubeClient struct {
	Request
	identity
	ctx     context.Context
	builder *builder
	driver  *release.Driver
	// refer adds ownerReferences to objects; see apply.Prepare.
	refer bool
	// uninstalls reports that the action uninstalls the whole release.
	uninstalls bool
	log        *logBuffer

	allow allow
	// reported holds the messages of emitted warnings. unowned holds the objects that
	// are not deleted, because the release does not own them or because they stay.
	reported sets.Set[string]
	unowned  sets.Set[apply.Key]
	// rendered reports that the next manifest to build has just been rendered.
	rendered  bool
	inventory Inventory
	// readings records the lookups of the templates.
	readings *lookupRecord
	// checked holds the UIDs of the objects that the action has read and may write, empty
	// for an object that did not exist.
	checked map[apply.Key]types.UID
	// scaled holds the objects whose replicas an autoscaler sets, for objects that are
	// not in the inventory yet.
	scaled map[apply.Key]bool
	// regained holds the objects whose replicas the manifest sets again; see the
	// function of this name.
	regained sets.Set[apply.Key]
	// applied holds the objects that the action applied or found unchanged. kinds holds
	// their kinds.
	applied []apply.State
	kinds   []schema.GroupVersionKind
	// approved holds the UIDs of the objects of the guarded operations that the action may carry
	// out, empty for an object that could not be read.
	approved map[apply.Key]types.UID
	// crdFolder holds the objects in crds/ of the chart.
	crdFolder sets.Set[crdFolderKey]
	// withheld describes the scale-downs that were not carried out, by StatefulSet.
	withheld map[apply.Key]string
	// finished holds the Jobs that have finished and must not run again.
	finished map[apply.Key]apply.State
	// left holds the objects that an uninstall leaves in place, and why. keepNamespace is
	// called before the first one.
	left          map[apply.Key]string
	keepNamespace func() error
	// deletedObjects holds what an uninstall has deleted and neither the manifest nor the
	// inventory contains: objects of hooks, and claims.
	deletedObjects []apply.Object
	// remaining lists the objects that still exist after the wait for their deletion.
	remaining []string
	// hookLeftovers holds hook objects that the chart now renders as plain objects.
	hookLeftovers map[apply.Key]types.UID
	// deleteErr is the error of the deletion of objects.
	deleteErr error
	// target holds the rendered objects.
	target engine.ResourceList
	// failedHook is the error of the last hook that failed.
	failedHook error
}

var _ engine.Kube = (*kubeClient)(nil)

// Build parses a manifest. It does not validate the objects; the API server does.
func (k *kubeClient) Build(reader io.Reader, _ bool) (list engine.ResourceList, err error) {
	defer release.RecoverPanic(&err)
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	return k.build(string(text))
}

func (k *kubeClient) build(manifest string) (engine.ResourceList, error) {
	build := k.builder.build
	if k.rendered {
		build = k.builder.buildRendered
	}
	list, err := build(manifest)
	if meta.IsNoMatchError(err) && k.target != nil && k.driver.Created == 0 {
		// Helm builds the previous revision. Its objects of kinds that the server no longer
		// serves do not exist.
		list, err = k.builder.lenient().build(manifest)
	}
	switch {
	case err != nil:
		return nil, err
	case k.uninstalls:
		for _, info := range list {
			// Helm 4 would read each object to check its owner, as Delete does.
			info.Client = nil
		}
		// Objects that the rules forbid are neither deleted nor run as hooks, unless the
		// operator created them.
		return k.filter(list, k.protectedReason)
	case k.rendered:
		// Helm builds the rendered manifest first, and then checks whether the objects
		// exist. Forbidden objects must be rejected before that check reads them.
		k.rendered = false
		if err := errors.Join(checkMetadata(list), checkDuplicates(list, manifest)); err != nil {
			return nil, err
		}
		if err := k.allow.check(k.Namespace, list); err != nil {
			return nil, err
		}
		k.target = list
		if err := k.findHookLeftovers(list); err != nil {
			return nil, err
		}
	}
	// Helm builds the rendered objects more than once.
	k.hideHookLeftovers(list)
	return list, nil
}

// Create creates hooks and applies everything else.
func (k *kubeClient) Create(resources engine.ResourceList) (result *engine.Result, err error) {
	result = &engine.Result{}
	defer release.RecoverPanic(&err)
	result.Created, err = k.applyAll(resources)
	return result, err
}

// applyAll creates hooks and applies all other objects. It returns the objects that it
// wrote, also if it fails.
func (k *kubeClient) applyAll(resources engine.ResourceList) (applied engine.ResourceList, err error) {
	if err := k.allow.check(k.Namespace, resources); err != nil {
		return nil, err
	}
	if err := k.watched(resources); err != nil {
		return nil, err
	}
	for _, info := range resources {
		if err := k.applyOrCreate(info); err != nil {
			if isHook(info) {
				k.failedHook = err
			}
			return applied, err
		}
		applied = append(applied, info)
	}
	return applied, nil
}

// Update applies the target and deletes the objects that only the original contains.
func (k *kubeClient) Update(original, target engine.ResourceList) (result *engine.Result, err error) {
	// Helm reads the result of a failed update, too.
	result = &engine.Result{}
	defer release.RecoverPanic(&err)
	k.regained = regained(original, target)
	if result.Updated, err = k.applyAll(target); err != nil {
		return result, err
	}
	if result.Deleted, err = k.prune(original, target); err == nil && k.plan == nil {
		err = k.regain(target)
	}
	for i := range k.applied {
		// Its controller may learn of the deletion of the autoscaler later, and scale once more.
		k.applied[i].Unscalable = k.regained.Has(k.applied[i].Key)
	}
	return result, err
}

// unscalable returns the objects whose autoscaler the last upgrade has deleted. They are
// expected only until the next correction: another autoscaler may scale them after that.
func (k *kubeClient) unscalable() sets.Set[apply.Key] {
	found := sets.Set[apply.Key]{}
	states, _ := k.inventory.Expected(k.Owner.UID)
	for _, s := range states {
		if s.Unscalable {
			found.Insert(s.Key)
		}
	}
	return found
}

// regain applies objects again whose replicas an autoscaler has set since they were applied.
// The autoscaler is deleted by now, so that the manifest counts.
func (k *kubeClient) regain(target engine.ResourceList) error {
	for _, info := range target {
		o := object(info)
		if !k.regained.Has(apply.KeyOf(o)) {
			continue
		}
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return err
		}
		state := apply.State{}
		if live != nil {
			state = apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live)
		}
		if !state.Scaled {
			continue
		}
		k.inventory.Put(state)
		k.applied = slices.DeleteFunc(k.applied, func(s apply.State) bool { return s.Key == state.Key })
		if err := k.applyOrCreate(info); err != nil {
			return err
		}
	}
	return nil
}

// DeleteHooks deletes hooks, in the background, as Helm does by default.
func (k *kubeClient) DeleteHooks(resources engine.ResourceList) (*engine.Result, []error) {
	return k.deleteAll(resources, metav1.DeletePropagationBackground)
}

// Delete deletes the objects of a release that is uninstalled, including objects that are not
// in its manifest.
func (k *kubeClient) Delete(resources engine.ResourceList, policy metav1.DeletionPropagation) (*engine.Result, []error) {
	if !k.uninstalls {
		return k.deleteAll(resources, policy)
	}
	// Helm's error does not contain the causes.
	if k.deleteErr = k.deleteClaims(resources); k.deleteErr != nil {
		return &engine.Result{}, []error{k.deleteErr}
	}
	result, errs := k.deleteAll(resources, policy)
	if err := k.sweep(nil); err != nil {
		errs = append(errs, err)
	}
	k.deleteErr = errors.Join(errs...)
	return result, errs
}

// deleteAll deletes the objects that the release owns. Events report the objects that
// it does not delete.
func (k *kubeClient) deleteAll(resources engine.ResourceList, policy metav1.DeletionPropagation) (result *engine.Result, errs []error) {
	result = &engine.Result{}
	var err error
	defer func() {
		if err != nil {
			errs = append(errs, err)
		}
	}()
	defer release.RecoverPanic(&err)
	for _, info := range resources {
		if err := k.deleteOwned(info, policy); err != nil {
			if isHook(info) {
				k.failedHook = err
			}
			errs = append(errs, err)
			continue
		}
		result.Deleted = append(result.Deleted, info)
	}
	return result, errs
}

// WaitForDelete waits until the objects no longer exist, or until the timeout.
func (k *kubeClient) WaitForDelete(resources engine.ResourceList, timeout time.Duration) (err error) {
	defer release.RecoverPanic(&err)
	var objects []apply.Object
	for _, info := range resources {
		if o := object(info); !k.unowned.Has(apply.KeyOf(o)) {
			objects = append(objects, o)
		}
	}
	return k.waitGone(objects, timeout)
}

// waitUntilGone waits for the deletion of objects from the inventory, of hook objects and
// of claims.
func (k *kubeClient) waitUntilGone(states []apply.State, timeout time.Duration) error {
	objects := slices.Clone(k.deletedObjects)
	for _, state := range states {
		if state.Kept {
			continue
		}
		o, err := k.named(state.Key)
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	return k.waitGone(objects, timeout)
}

func (k *kubeClient) waitGone(objects []apply.Object, timeout time.Duration) error {
	resume := k.Slot.Release()
	defer resume()
	ctx, cancel := context.WithTimeout(k.ctx, timeout)
	defer cancel()
	k.remaining = nil
	for _, o := range objects {
		err := k.objects.WaitGone(ctx, o, "")
		if err == nil {
			continue
		}
		if ctx.Err() == nil || k.ctx.Err() != nil {
			return err
		}
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return err
		}
		if live != nil {
			k.remaining = append(k.remaining, apply.Describe(o.Unstructured))
		}
	}
	if len(k.remaining) > 0 {
		return ErrWaiting
	}
	return nil
}

// WatchUntilReady waits until hooks have finished, or until the timeout.
func (k *kubeClient) WatchUntilReady(resources engine.ResourceList, timeout time.Duration) (err error) {
	defer release.RecoverPanic(&err)
	resume := k.Slot.Release()
	defer resume()
	ctx, cancel := context.WithTimeout(k.ctx, timeout)
	defer cancel()
	for _, info := range resources {
		if err := k.waitForHook(ctx, info, timeout); err != nil {
			k.failedHook = err
			return err
		}
	}
	return nil
}
