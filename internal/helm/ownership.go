package helm

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Helm checks the ownership of an object only if no earlier manifest of the release
// contains it. Here a manifest proves nothing: the object may have been deleted and
// created by another user since, and a record may be forged. The live object or the
// inventory must show that the release owns it.

// refuseForeign rejects objects that the release does not own. Objects that the
// inventory holds for the owner cost no request. Hook objects that are deleted first
// are not checked.
func (k *kubeClient) refuseForeign(objects engine.ResourceList) error {
	_, err := k.readOwned(slices.DeleteFunc(slices.Clone(objects), func(info *resource.Info) bool {
		key := apply.KeyOf(object(info))
		_, replaced := k.hookLeftovers[key]
		return replaced || k.knownOwned(key)
	}))
	return err
}

// readOwned reads the objects that an action is about to write. It rejects objects that
// the release neither owns nor may take over.
func (k *kubeClient) readOwned(objects engine.ResourceList) (map[apply.Key]*metav1.PartialObjectMetadata, error) {
	found := make(map[apply.Key]*metav1.PartialObjectMetadata, len(objects))
	var foreign []string
	for _, info := range objects {
		o := object(info)
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return nil, err
		}
		if err := k.mayTakeOver(apply.KeyOf(o), live); err != nil {
			foreign = append(foreign, fmt.Sprintf("%s: %v", apply.Describe(o.Unstructured), err))
		}
		found[apply.KeyOf(o)] = live
		k.checked[apply.KeyOf(o)] = uidOf(live)
		// The object may not be in the inventory yet.
		k.scaled[apply.KeyOf(o)] = live != nil && apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live).Scaled
	}
	return found, joinReasons(ErrConflict, foreign)
}

// uidOf returns the UID of a live object, or an empty UID if the object is nil.
func uidOf(live *metav1.PartialObjectMetadata) types.UID {
	if live == nil {
		return ""
	}
	return live.GetUID()
}

// writableUID returns the UID of the object that a write may change, or an empty UID if the
// write must create the object. An object that was not checked is created: if it exists, the
// write fails and the object is checked then.
func (k *kubeClient) writableUID(key apply.Key) types.UID {
	if uid, checked := k.checked[key]; checked {
		return uid
	}
	if k.knownOwned(key) {
		state, _ := k.inventory.Get(key)
		return state.UID
	}
	return ""
}

// maxReplaced limits how often one action checks an object again because another client
// creates, deletes or replaces it.
const maxReplaced = 5

// onlyOwned calls write with the UID of the object that it may change, see writableUID. The
// ownership was checked some time ago: a hook may have run for minutes since. If the write
// finds another object, or none, the object is checked again.
func (k *kubeClient) onlyOwned(o apply.Object, write func(types.UID) error) error {
	key := apply.KeyOf(o)
	uid := k.writableUID(key)
	for attempt := 1; ; attempt++ {
		err := write(uid)
		if !errors.Is(err, apply.ErrReplaced) || attempt == maxReplaced {
			return err
		}
		live, readErr := k.objects.Get(k.ctx, o)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		if why := k.mayTakeOver(key, live); why != nil {
			return fmt.Errorf("%w: %s: %w", ErrConflict, apply.Describe(o.Unstructured), why)
		}
		uid = uidOf(live)
		k.checked[key] = uid
	}
}

// splitForeign separates the objects that the release owns from foreign objects. The
// error lists the foreign objects.
func (k *kubeClient) splitForeign(objects engine.ResourceList) (ours, foreign engine.ResourceList, err error) {
	if err := k.allow.check(k.Namespace, objects); err != nil {
		return nil, nil, err
	}
	var errs []error
	for _, info := range objects {
		o := object(info)
		if !k.knownOwned(apply.KeyOf(o)) {
			live, err := k.objects.Get(k.ctx, o)
			if err != nil {
				return nil, nil, err
			}
			if live != nil {
				err = k.owns(apply.KeyOf(o), live)
			}
			k.checked[apply.KeyOf(o)] = uidOf(live)
			if err != nil {
				foreign = append(foreign, info)
				errs = append(errs, fmt.Errorf("verify %s: %w", apply.KeyOf(o), err))
				continue
			}
		}
		ours = append(ours, info)
	}
	return ours, foreign, errors.Join(errs...)
}

// knownOwned reports whether the inventory shows that the release owns an object. A
// drifted object may have a new owner although it has the owner's label.
func (k *kubeClient) knownOwned(key apply.Key) bool {
	_, managed := k.managed(key)
	return managed && !k.inventory.Drifted(k.Owner.UID, key)
}

// managed returns the state of an object that the inventory holds for the owner.
func (k *kubeClient) managed(key apply.Key) (apply.State, bool) {
	state, known := k.inventory.Get(key)
	return state, known && state.Managed && state.Owner == k.Owner.UID
}

// mayTakeOver returns an error if the release does not own an object and must not
// take it over. The object is nil if it does not exist. The error contains what users
// can do. Objects of other custom resources cannot be taken over.
func (k *kubeClient) mayTakeOver(key apply.Key, live *metav1.PartialObjectMetadata) error {
	if live == nil {
		return nil
	}
	if err := apply.CheckOwnership(live, k.Owner); err != nil {
		return fmt.Errorf("%w; rename one of the two", err)
	}
	if err := k.owns(key, live); err != nil && !k.TakeOwnership {
		return fmt.Errorf("%w%s", err, k.conflictHint())
	}
	return nil
}

// owns returns an error if the release does not own a live object. The release owns an
// object if one of these is true:
//
//   - The object was applied for the custom resource; see apply.Owns.
//   - The object has Helm's label and annotations for this release.
//   - The custom resource controls the object, as with the operator-sdk.
//   - This process applied the object, and the object has the same UID, although
//     someone has removed all of the above.
//
// A manifest that contains the object does not prove ownership.
func (k *kubeClient) owns(key apply.Key, live *metav1.PartialObjectMetadata) error {
	if err := k.foreign(live); err != nil {
		return err
	}
	controller := metav1.GetControllerOfNoCopy(live)
	switch {
	case apply.Owns(live, k.Owner), k.marked(live), controller != nil && controller.UID == k.Owner.UID,
		live.GetUID() != "" && live.GetUID() == k.inventory.ExpectedUID(k.Owner.UID, key):
		return nil
	}
	return fmt.Errorf("%w: it has neither the labels of %s nor those of release %s/%s", apply.ErrForeign, k.Owner, k.Namespace, k.Release)
}

// foreign returns an error if a live object belongs to another custom resource or
// another release, or stayed when another custom resource was deleted.
func (k *kubeClient) foreign(live *metav1.PartialObjectMetadata) error {
	if err := apply.CheckOwnership(live, k.Owner); err != nil {
		return err
	}
	name, namespace := live.Annotations[api.AnnotationReleaseName], live.Annotations[api.AnnotationReleaseNamespace]
	if name != "" && (name != k.Release || namespace != k.Namespace) {
		return fmt.Errorf("%w: it belongs to release %s/%s", apply.ErrForeign, namespace, name)
	}
	by := live.Annotations[api.AnnotationLeftBy]
	if by != "" && by != k.Owner.String() && live.Labels[api.LabelOwnerUID] == "" {
		return fmt.Errorf("%w: %s left it when it was deleted", apply.ErrForeign, by)
	}
	return nil
}

// marked reports whether a live object has Helm's label and annotations for this
// release.
func (k *kubeClient) marked(live *metav1.PartialObjectMetadata) bool {
	return live.Labels[api.LabelManagedBy] == api.ManagedByHelm &&
		live.Annotations[api.AnnotationReleaseName] == k.Release && live.Annotations[api.AnnotationReleaseNamespace] == k.Namespace
}

// owned returns the owner's objects in the inventory, and the objects with only the
// owner's label that a verified record contains.
func (k *kubeClient) owned() ([]apply.State, error) {
	owned, claimed := k.inventory.OwnedBy(k.Owner.UID), k.inventory.ClaimedBy(k.Owner.UID)
	if len(claimed) == 0 {
		return owned, nil
	}
	recorded, err := k.namedIn(k.driver.Manifests)
	if err != nil {
		return nil, err
	}
	for i := range claimed {
		if recorded.Has(claimed[i].Key) {
			owned = append(owned, claimed[i])
		}
	}
	return owned, nil
}

// namedIn returns the keys of the objects in stored manifests.
func (k *kubeClient) namedIn(manifests []string) (sets.Set[apply.Key], error) {
	found := sets.Set[apply.Key]{}
	for _, manifest := range manifests {
		list, err := k.builder.existing(manifest)
		if err != nil {
			return nil, err
		}
		found = found.Union(keys(list))
	}
	return found, nil
}

// among returns the objects that are in one of the manifests, too.
func (k *kubeClient) among(objects engine.ResourceList, manifests []string) (engine.ResourceList, error) {
	stored, err := k.namedIn(manifests)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(objects), func(info *resource.Info) bool { return !stored.Has(apply.KeyOf(object(info))) }), nil
}
