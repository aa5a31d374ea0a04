package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// Inventory is what the actions ask and tell about the objects of releases.
type Inventory interface {
	// Get returns what is known of one object.
	Get(key apply.Key) (apply.State, bool)
	// Place sets the namespace of an owner's release, and Name notes objects that it
	// has, which may be outside of that namespace.
	SetReleaseNamespace(owner types.UID, namespace string)
	AddObjects(owner types.UID, objects []apply.Key)
	// OwnedBy returns the objects that count for an owner. ClaimedBy returns those that
	// only carry its label, outside of the namespace of its release.
	OwnedBy(owner types.UID) []apply.State
	ClaimedBy(owner types.UID) []apply.State
	// ExpectedUID returns the UID of an object that is expected for an owner, empty
	// if none is.
	ExpectedUID(owner types.UID, key apply.Key) types.UID
	// Intact reports whether an object is as it was last applied for an owner.
	Intact(owner types.UID, key apply.Key) bool
	// Damaged reports whether an object is not what is expected for an owner.
	Drifted(owner types.UID, key apply.Key) bool
	// Put and Remove tell what an action has just written.
	Put(state apply.State)
	Remove(state apply.State)
	// Expect says what the objects of an owner are to be from now on, and
	// Repaired says it of one of them.
	Expect(owner types.UID, objects []apply.State)
	ExpectOne(owner types.UID, state apply.State)
	// Outcome returns how a Job with ttlSecondsAfterFinished has finished, and an
	// empty text if it has not; Finish notes that one that is gone has.
	JobOutcome(owner types.UID, key apply.Key, uid types.UID) string
	SetJobOutcome(owner types.UID, key apply.Key, outcome string)
	// Finished returns the expected Jobs that have finished so, and Expected what
	// is expected of every object.
	JobOutcomes(owner types.UID) map[apply.Key]string
	Expected(owner types.UID) ([]apply.State, bool)
	// Forget drops what is known of an owner whose release is gone.
	Forget(owner types.UID)
	// Kinds returns what Need was last told.
	Kinds(owner types.UID) []schema.GroupVersionKind
	// Need makes sure that the kinds are watched, in the namespace of the
	// release, before objects are applied.
	EnsureWatched(ctx context.Context, owner types.UID, namespace string, kinds []schema.GroupVersionKind) error
}

// kubeClient is the kube.Interface of one action. Every request it makes ends
// with the action's context, and every method turns a panic into an error:
// Helm calls them on goroutines of its own, where a panic would end the
// process.
type kubeClient struct {
	Request
	identity
	ctx     context.Context
	builder *builder
	driver  *release.Driver
	// refer adds ownerReferences to objects, see apply.Prepare.
	refer bool
	// uninstalls reports that the action uninstalls the whole release.
	uninstalls bool
	log        *logBuffer

	allow allow
	// reported holds the warnings that were emitted, and unowned the objects that are
	// not deleted because the release does not own them.
	reported sets.Set[string]
	unowned  sets.Set[apply.Key]
	// rendered reports that the next manifest to build was just rendered.
	rendered  bool
	inventory Inventory
	// readings records what templates have looked up.
	readings *lookupRecord
	// scaled holds the objects whose replicas an autoscaler sets, where the inventory
	// does not know them yet.
	scaled map[apply.Key]bool
	// regained holds the objects whose replicas the manifest sets again, instead of an
	// autoscaler.
	regained sets.Set[apply.Key]
	// applied holds the objects that the action has applied, or found unchanged, and
	// kinds their kinds.
	applied []apply.State
	kinds   []schema.GroupVersionKind
	// finished holds the Jobs that have finished and must not run again.
	finished map[apply.Key]apply.State
	// unhooked holds the hook objects that an uninstall has deleted.
	unhooked []apply.Object
	// remaining holds the objects that still exist after the wait for their deletion.
	remaining []string
	// hookLeftovers holds the objects of hooks that the chart now renders as plain
	// objects.
	hookLeftovers map[apply.Key]types.UID
	// undeleted is why objects could not be deleted.
	undeleted error
	// target holds the rendered objects.
	target helmkube.ResourceList
	// failedHook is the error of the last hook that failed.
	failedHook error
}

var (
	_ helmkube.Interface                    = (*kubeClient)(nil)
	_ helmkube.InterfaceExt                 = (*kubeClient)(nil)
	_ helmkube.InterfaceThreeWayMerge       = (*kubeClient)(nil)
	_ helmkube.InterfaceDeletionPropagation = (*kubeClient)(nil)
)

// IsReachable answers nil: the first real request tells, at no extra cost.
func (k *kubeClient) IsReachable() error { return nil }

// Build parses a manifest. It never validates: the API server does.
func (k *kubeClient) Build(reader io.Reader, _ bool) (list helmkube.ResourceList, err error) {
	defer release.RecoverPanic(&err)
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	return k.build(string(text))
}

func (k *kubeClient) build(manifest string) (helmkube.ResourceList, error) {
	list, err := k.builder.build(manifest)
	switch {
	case err != nil:
		return nil, err
	case k.uninstalls:
		// Objects that the rules forbid are neither deleted nor run as hooks, unless the
		// operator has created them.
		return k.filter(list, k.whyProtected)
	case k.rendered:
		// What Helm builds first is what it rendered. It looks next whether
		// the objects exist, and must not be led to look elsewhere.
		k.rendered = false
		if err := errors.Join(checkMetadata(list), checkDuplicates(list)); err != nil {
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
func (k *kubeClient) Create(resources helmkube.ResourceList) (result *helmkube.Result, err error) {
	result = &helmkube.Result{}
	defer release.RecoverPanic(&err)
	result.Created, err = k.applyAll(resources)
	return result, err
}

// applyAll creates hooks and applies everything else. It returns what it has
// created and applied, also with an error.
func (k *kubeClient) applyAll(resources helmkube.ResourceList) (applied helmkube.ResourceList, err error) {
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

// Update applies the target and deletes what only the original holds.
func (k *kubeClient) Update(original, target helmkube.ResourceList, _ bool) (result *helmkube.Result, err error) {
	// Helm reads the result of a failed update, too.
	result = &helmkube.Result{}
	defer release.RecoverPanic(&err)
	k.regained = regained(original, target)
	if result.Updated, err = k.applyAll(target); err != nil {
		return result, err
	}
	result.Deleted, err = k.prune(original, target)
	return result, err
}

// UpdateThreeWayMerge is what Helm calls to take objects over; an apply by
// force does that anyway.
func (k *kubeClient) UpdateThreeWayMerge(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return k.Update(original, target, force)
}

// Delete deletes hooks, in the background, as Helm does by default.
func (k *kubeClient) Delete(resources helmkube.ResourceList) (*helmkube.Result, []error) {
	return k.deleteAll(resources, metav1.DeletePropagationBackground)
}

// DeleteWithPropagationPolicy deletes the objects of a release that is
// uninstalled. What its manifest does not name goes, too.
func (k *kubeClient) DeleteWithPropagationPolicy(resources helmkube.ResourceList, policy metav1.DeletionPropagation) (*helmkube.Result, []error) {
	result, errs := k.deleteAll(resources, policy)
	if !k.uninstalls {
		return result, errs
	}
	if err := k.sweep(nil); err != nil {
		errs = append(errs, err)
	}
	// Helm's error does not contain the causes.
	k.undeleted = errors.Join(errs...)
	return result, errs
}

// deleteAll deletes the objects that the release owns. The others stay, and an event
// reports them.
func (k *kubeClient) deleteAll(resources helmkube.ResourceList, policy metav1.DeletionPropagation) (result *helmkube.Result, errs []error) {
	result = &helmkube.Result{}
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

// WaitForDelete waits until the objects are gone, or the timeout passed.
func (k *kubeClient) WaitForDelete(resources helmkube.ResourceList, timeout time.Duration) (err error) {
	defer release.RecoverPanic(&err)
	var objects []apply.Object
	for _, info := range resources {
		if o := object(info); !k.unowned.Has(apply.KeyOf(o)) {
			objects = append(objects, o)
		}
	}
	return k.waitGone(objects, timeout)
}

// waitUntilGone is WaitForDelete for what the inventory has, and for objects of
// hooks.
func (k *kubeClient) waitUntilGone(states []apply.State, timeout time.Duration) error {
	objects := slices.Clone(k.unhooked)
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
		err := k.objects.WaitGone(ctx, o)
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

// WatchUntilReady waits until hooks are done, or the timeout passed.
func (k *kubeClient) WatchUntilReady(resources helmkube.ResourceList, timeout time.Duration) (err error) {
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

// Wait answers nil: nobody waits for readiness inside an action, which would
// hold a slot; the custom resource's status follows the objects afterwards.
func (k *kubeClient) Wait(helmkube.ResourceList, time.Duration) error { return nil }

// WaitWithJobs answers nil, like Wait.
func (k *kubeClient) WaitWithJobs(helmkube.ResourceList, time.Duration) error { return nil }

// WaitAndGetCompletedPodPhase is no part of any action that is run here.
func (k *kubeClient) WaitAndGetCompletedPodPhase(name string, _ time.Duration) (corev1.PodPhase, error) {
	return "", fmt.Errorf("pod %s: waiting for a pod's phase is not supported", name)
}
