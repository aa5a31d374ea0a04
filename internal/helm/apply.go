package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// recreate deletes and creates an object that cannot be changed. It does nothing if the
// API server would reject the new object for another reason.
func (k *kubeClient) recreate(o apply.Object, options apply.Options, refusal error) (*metav1.PartialObjectMetadata, error) {
	live, err := k.objects.Unchangeable(k.ctx, o, refusal)
	if err != nil {
		return nil, err
	}
	if live == nil || !k.mayRecreate(o, live) {
		return nil, refusal
	}
	_, note := apply.Propagation(o, live)
	k.Notifier.Warn(api.EventForced, fmt.Sprintf("%s could not be changed and is deleted and created again%s", apply.Describe(o.Unstructured), note))
	made, err := k.objects.Replace(k.ctx, o, live, options)
	// A plan lists an object once.
	if err != nil || k.plan != nil || len(ignored(k.Ignore, o.Unstructured)) == 0 {
		return made, err
	}
	options.UID = made.GetUID()
	if o, err = k.dropIgnoredFields(o, &options); err != nil {
		return nil, err
	}
	return k.objects.Apply(k.ctx, o, options)
}

// watched starts to watch the kinds of the objects before any object is applied, so
// that all drift is detected. A kind that cannot be watched does not fail the action;
// the status of the custom resource reports it.
func (k *kubeClient) watched(resources engine.ResourceList) error {
	kinds := sets.Set[schema.GroupVersionKind]{}
	for _, info := range resources {
		if !isHook(info) {
			kinds.Insert(info.Mapping.GroupVersionKind)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	k.kinds = slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	})
	return k.need(k.kinds)
}

func (k *kubeClient) need(kinds []schema.GroupVersionKind) error {
	err := k.inventory.EnsureWatched(k.ctx, k.Owner.UID, k.Namespace, kinds)
	if err != nil && k.ctx.Err() == nil {
		k.log.printf("%v", err)
		return nil
	}
	return err
}

// applyOrCreate creates a hook, or applies any other object.
func (k *kubeClient) applyOrCreate(info *resource.Info) error {
	o := object(info)
	if isHook(info) {
		o.Unstructured = apply.PrepareHook(o.Unstructured, k.Owner)
		created, err := k.objects.Create(k.ctx, o)
		if apierrors.IsAlreadyExists(err) && k.unowned.Has(apply.KeyOf(o)) {
			// The object of an earlier run stays, see hookStays.
			return nil
		}
		if err != nil {
			return err
		}
		return info.Refresh(created, true)
	}
	if state, ok := k.finished[apply.KeyOf(o)]; ok {
		k.applied = append(k.applied, state)
		return nil
	}
	o, err := k.prepare(o)
	if err != nil {
		return err
	}
	if uid, ok := k.hookLeftovers[apply.KeyOf(o)]; ok {
		if err := k.removeHookLeftover(o, uid); err != nil {
			return err
		}
	}
	if state, ok := k.unchanged(o); ok {
		k.applied = append(k.applied, expected(o, state))
		return nil
	}
	_, err = k.apply(o)
	return err
}

// prepare returns the object as it is sent to the API server. It sets Helm's labels and
// annotations on the given object, which belongs to this action. An object that is guarded, or
// that a user protects, gets no ownerReference, so that a foreground deletion or the garbage
// collector cannot delete it.
func (k *kubeClient) prepare(o apply.Object) (apply.Object, error) {
	state, _ := k.managed(apply.KeyOf(o))
	return k.prepareWith(o, k.refer && !state.Protected && k.rules().Reason(o.Unstructured) == "")
}

func (k *kubeClient) prepareWith(o apply.Object, refer bool) (apply.Object, error) {
	o.SetLabels(labels.Merge(o.GetLabels(), map[string]string{api.LabelManagedBy: api.ManagedByHelm}))
	annotations := labels.Merge(o.GetAnnotations(), map[string]string{
		api.AnnotationReleaseName:      k.Release,
		api.AnnotationReleaseNamespace: k.Namespace,
	})
	if !apply.IsProtected(o.Unstructured) {
		// An author whose values become annotations must not end the protection that an
		// administrator has set.
		delete(annotations, api.AnnotationProtect)
	}
	o.SetAnnotations(annotations)
	prepared, err := apply.Prepare(o.Unstructured, k.Owner, refer)
	return apply.Object{Unstructured: prepared, Mapping: o.Mapping}, err
}

// unchanged reports whether the same content was applied before and the object has not
// drifted since.
func (k *kubeClient) unchanged(o apply.Object) (apply.State, bool) {
	key := apply.KeyOf(o)
	state, known := k.inventory.Get(key)
	return state, known && !k.Verify && (!state.Scaled || !k.regained.Has(key)) &&
		state.Applied == o.GetAnnotations()[api.AnnotationApplied] &&
		k.inventory.Intact(k.Owner.UID, key)
}

// apply sends a prepared object, unless the release does not own the live object, and records
// the result in the inventory.
func (k *kubeClient) apply(o apply.Object) (applied *metav1.PartialObjectMetadata, err error) {
	key := apply.KeyOf(o)
	whole := o
	err = k.onlyOwned(whole, func(uid types.UID) error {
		live, _ := k.inventory.Get(key)
		o, applied, err = k.send(whole, apply.Options{
			UID:           uid,
			LeaveReplicas: (live.Scaled || k.scaled[key]) && !k.regained.Has(key),
			Ignored:       matching(k.Ignore, whole.Unstructured),
			Warn:          func(what string) { k.Notifier.Warn(api.EventObjectAdjusted, what) },
		})
		return err
	})
	if k.planRefusal(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := apply.StateOf(o.Mapping.GroupVersionKind.GroupKind(), applied)
	k.inventory.Put(state)
	if _, withheld := k.withheld[key]; withheld {
		// The object counts as drifted.
		state.Fingerprint = ^state.Fingerprint
	}
	k.applied = append(k.applied, expected(o, state))
	return applied, nil
}

// send applies an object without its ignored fields, and returns what it sent. A forced
// action recreates the object if it cannot be changed.
func (k *kubeClient) send(whole apply.Object, options apply.Options) (sent apply.Object, applied *metav1.PartialObjectMetadata, err error) {
	if k.plan != nil {
		sent, err = k.keepIgnoredFields(whole)
	} else {
		sent, err = k.dropIgnoredFields(whole, &options)
	}
	if err == nil && !k.ignoresReplicas(whole) {
		sent, err = k.keepReplicas(sent, options)
	}
	if err != nil {
		return sent, nil, err
	}
	applied, err = k.objects.Apply(k.ctx, sent, options)
	if err != nil && k.Force && options.UID != "" && !errors.Is(err, apply.ErrReplaced) {
		applied, err = k.recreate(whole, options, err)
	}
	return sent, applied, err
}

// expected returns the expected state of an object that was just applied.
func expected(o apply.Object, state apply.State) apply.State {
	if setsReplicas(o) {
		return state.Unscaled()
	}
	return state
}

// stored returns the inventory for the record of the deployed revision.
func (k *kubeClient) stored() release.Inventory {
	references := 0
	for i := range k.applied {
		if k.applied[i].Referred {
			references++
		}
	}
	stored := release.Inventory{Kinds: release.KindNames(k.kinds), References: &references, Outside: release.Outside(k.applied, k.Namespace)}
	return release.WithFinished(stored, k.applied, func(s apply.State) string { return k.inventory.JobOutcome(k.Owner.UID, s.Key, s.UID) })
}

// prune deletes the objects that the original manifest contains, or the inventory holds
// for the owner, and the target does not contain. Objects that only have copied labels
// are not in the inventory. Objects with the policy keep are disowned.
func (k *kubeClient) prune(original, target engine.ResourceList) (engine.ResourceList, error) {
	var deleted engine.ResourceList
	var errs []error
	wanted := keys(target)
	for _, info := range original {
		key := apply.KeyOf(object(info))
		if wanted.Has(key) {
			continue
		}
		// The sweep skips this object.
		wanted.Insert(key)
		what, err := k.fateOf(object(info))
		switch {
		case err != nil, what == left:
		case what == disowned:
			err = k.disown(object(info))
		default:
			if err = k.deleteOwned(info, metav1.DeletePropagationBackground); err == nil {
				deleted = append(deleted, info)
			}
		}
		errs = append(errs, err)
	}
	return deleted, errors.Join(append(errs, k.sweep(wanted))...)
}

// fate is what happens to an object that is not rendered any longer.
type fate int

const (
	deleted fate = iota
	// disowned: the policy keep is in the manifest, or a user has set it on the live object.
	disowned
	// left: the object is guarded, and its deletion was not approved.
	left
)

// fateOf returns what happens to an object that is not rendered any longer. The object is
// read from the API server, because the watch may be behind and a deletion cannot be
// undone.
func (k *kubeClient) fateOf(o apply.Object) (fate, error) {
	if apply.HasKeepPolicy(o) || k.neverDeleted(apply.KeyOf(o)) {
		return disowned, nil
	}
	live, err := k.objects.Get(k.ctx, o)
	switch {
	case apierrors.IsForbidden(err):
		// The deletion will be forbidden, too.
		return deleted, nil
	case err != nil, live == nil:
		return deleted, err
	case apply.HasKeepPolicy(live):
		return disowned, nil
	}
	leaves, err := k.leaves(o, live)
	if leaves {
		return left, err
	}
	return deleted, err
}

// disown ends the ownership of an object with the policy keep, or of the namespace of the
// release. The garbage collector would delete the object with the custom resource if it kept
// its ownerReference.
func (k *kubeClient) disown(o apply.Object) error {
	k.log.printf("%s is kept, and no longer belongs to the release", apply.Describe(o.Unstructured))
	live, err := k.objects.Release(k.ctx, o, k.Owner, "", false)
	if err == nil && live != nil {
		k.inventory.Put(apply.StateOf(o.Mapping.GroupVersionKind.GroupKind(), live))
	}
	return err
}

// sweep deletes the objects that the inventory holds for the owner and that are not
// wanted, for example after a revision that failed. Objects with the policy keep are
// disowned.
func (k *kubeClient) sweep(wanted sets.Set[apply.Key]) error {
	owned, err := k.owned()
	if err != nil {
		return err
	}
	var errs []error
	for _, state := range owned {
		if wanted.Has(state.Key) || state.Deleting {
			continue
		}
		o, err := k.named(state.Key)
		what := deleted
		switch {
		case meta.IsNoMatchError(err):
			// The CustomResourceDefinition was deleted with its objects.
			k.inventory.Remove(state)
			continue
		case err != nil:
		case state.Kept && k.uninstalls && k.MoveTo == "":
			errs = append(errs, k.leave(o, state, "its resource policy is keep"))
			continue
		case state.Kept:
			what = disowned
		case !k.uninstalls:
			what, err = k.fateOf(o)
		}
		switch {
		case err != nil, what == left:
		case what == disowned:
			err = k.disown(o)
		default:
			err = k.remove(o, state, metav1.DeletePropagationBackground)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sweepClaimed deletes objects that only carry the owner's label, if the kind's rules
// allow them. It is for releases whose records no longer exist. Other users may have
// set the label, so failures are ignored, unless the garbage collector would delete an object
// that stays.
func (k *kubeClient) sweepClaimed() error {
	for _, state := range k.inventory.ClaimedBy(k.Owner.UID) {
		o, err := k.named(state.Key)
		if err != nil || state.Kept || state.Deleting || k.OwnedOnly || k.allow.refusesObject(k.Namespace, o) != "" {
			continue
		}
		if why, _ := k.staysBehind(o, state); why != "" {
			if err := k.leave(o, state, why); err != nil && state.Referred && state.Namespace == k.Owner.Namespace {
				return err
			}
			continue
		}
		_ = k.remove(o, state, metav1.DeletePropagationBackground)
	}
	return nil
}

// deleteOwned deletes an object if the release owns it. If the object is not owned, it
// reports the object, or fails if a hook needs the name.
func (k *kubeClient) deleteOwned(info *resource.Info, policy metav1.DeletionPropagation) error {
	o := object(info)
	if isHook(info) && k.neverDeleted(apply.KeyOf(o)) {
		return joinReasons(ErrNotAllowed, []string{fmt.Sprintf("hook %s would delete the namespace of the release", apply.Describe(o.Unstructured))})
	}
	if state, managed := k.managed(apply.KeyOf(o)); managed {
		if isHook(info) && k.hookStays(o, state) {
			return nil
		}
		return k.remove(o, state, policy)
	}
	why, err := k.protectedReason(info)
	switch {
	case err != nil:
		return err
	case why != "" && isHook(info):
		return joinReasons(ErrNotAllowed, []string{why})
	case why != "":
		k.reportSkipped(info, why)
		return nil
	}
	live, err := k.objects.Get(k.ctx, o)
	if leaves, err := k.leaveReferring(info, live); leaves || err != nil {
		return err
	}
	if k.OwnedOnly && (apierrors.IsForbidden(err) || live != nil) {
		k.reportUnowned(o, "with its own permissions, the operator deletes only objects that it applied")
		return nil
	}
	if err != nil || live == nil {
		return err
	}
	if isHook(info) {
		return k.deleteHook(o, live, policy)
	}
	if err := k.owns(apply.KeyOf(o), live); err != nil {
		k.reportUnowned(o, err.Error())
		return nil
	}
	return k.remove(o, k.stateOf(o, live), policy)
}

// remove deletes an object, unless the uninstall leaves it.
func (k *kubeClient) remove(o apply.Object, state apply.State, policy metav1.DeletionPropagation) error {
	why, err := k.staysBehind(o, state)
	if err != nil {
		return err
	}
	if why != "" {
		return k.leave(o, state, why)
	}
	// The watch may not have reported yet that a user protects the object, or that it has another
	// owner.
	var version *string
	if k.uninstallsAll() && state.ResourceVersion != "" && state.GroupKind() != guard.StatefulSet {
		version = &state.ResourceVersion
	}
	err = k.objects.DeleteVersion(k.ctx, o, state.UID, version, policy)
	if version != nil && apierrors.IsConflict(err) {
		live, err := k.objects.Get(k.ctx, o)
		if live == nil {
			return err
		}
		if why := k.foreign(live); why != nil {
			k.inventory.Put(apply.StateOf(state.GroupKind(), live))
			if _, managed := k.managed(state.Key); managed {
				// It still has the label. Otherwise the sweep would delete it.
				k.inventory.Remove(state)
			}
			k.reportUnowned(o, why.Error())
			return nil
		}
		fresh := k.stateOf(o, live)
		fresh.ResourceVersion = ""
		return k.remove(o, fresh, policy)
	}
	if err != nil {
		return err
	}
	k.inventory.Remove(state)
	return nil
}

func object(info *resource.Info) apply.Object {
	// The builder creates only unstructured objects. Helm refreshes them with objects
	// that this client returned.
	content, _ := info.Object.(*unstructured.Unstructured)
	return apply.Object{Unstructured: content, Mapping: info.Mapping}
}
