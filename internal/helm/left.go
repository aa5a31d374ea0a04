package helm

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/watches"
)

// An uninstall leaves what the guard protects: the object loses everything that ties it to the
// custom resource, and gets a mark by which users find it. Helm's label and annotations stay,
// so that a custom resource of the same kind and name adopts it.
//
// The object is released before the records are deleted. After an interruption, the next
// uninstall finds it in the manifest, and leaves it again.

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// onDelete returns what an uninstall does about guarded objects. If the custom resource is not
// being deleted, for example after an interrupted "helm uninstall", the next install adopts
// them.
func (k *kubeClient) onDelete() watches.OnDelete {
	switch {
	case !k.Deleting:
		return watches.OnDeleteKeep
	case k.DeleteData:
		return watches.OnDeleteDelete
	default:
		return k.Guard.Deletion()
	}
}

// neverDeleted reports whether no action may delete an object, with or without an approval: it
// is the namespace of the release or of the custom resource, or an object that the chart has moved
// from its templates to crds/. An uninstall deletes no namespace that the chart renders, because
// other clients may have created objects in it.
func (k *kubeClient) neverDeleted(key apply.Key) bool {
	return k.crdFolder.Has(crdFolderKey{key.GroupKind(), key.Name}) ||
		key.GroupKind() == namespaceKind && (key.Name == k.Namespace || key.Name == k.Owner.Namespace || k.uninstallsAll())
}

// uninstallsAll reports whether the action uninstalls the release, and not only to move it.
func (k *kubeClient) uninstallsAll() bool { return k.uninstalls && k.MoveTo == "" }

// staysBehind returns why an uninstall leaves an object, empty if it deletes the object. It
// makes no request, except for a StatefulSet.
func (k *kubeClient) staysBehind(o apply.Object, state apply.State) (why string, err error) {
	kind := state.GroupKind()
	switch {
	case !k.uninstalls || state.Deleting:
		return "", nil
	case k.neverDeleted(state.Key):
		return "everything in it would be deleted with it", nil
	case !k.uninstallsAll() || k.approves(state.Key, state.UID):
		return "", nil
	case state.Protected && (k.onDelete() != watches.OnDeleteDelete || k.Guard.Mode != watches.GuardWarn && k.Guard.Mode != watches.GuardOff):
		// With Delete, refuseProtected has not found it: it was protected after the check, or
		// the namespace of the custom resource is being deleted.
		return guard.Protected, nil
	case k.onDelete() == watches.OnDeleteDelete:
		return "", nil
	case kind == guard.StatefulSet && k.rules().Kind(kind) == "":
		return k.retainClaims(o, state.UID)
	default:
		return k.rules().Kind(kind), nil
	}
}

// stateOf returns the state of an object that the inventory may not hold for the owner. Objects
// of the operator-sdk have an ownerReference, but no label.
func (k *kubeClient) stateOf(o apply.Object, live *metav1.PartialObjectMetadata) apply.State {
	state := apply.StateOf(o.Mapping.GroupVersionKind.GroupKind(), live)
	state.Referred = apply.HasOwnerReference(live, k.Owner.UID)
	return state
}

// leaveReferring leaves a guarded object with an ownerReference to the custom resource. The
// garbage collector would delete it, also if the release does not own it.
func (k *kubeClient) leaveReferring(info *resource.Info, live *metav1.PartialObjectMetadata) (leaves bool, err error) {
	if live == nil || isHook(info) || !apply.HasOwnerReference(live, k.Owner.UID) ||
		k.rules().Kind(info.Mapping.GroupVersionKind.GroupKind()) == "" && !apply.IsProtected(live) {
		return false, nil
	}
	o := object(info)
	why, err := k.staysBehind(o, k.stateOf(o, live))
	if err != nil || why == "" {
		return false, err
	}
	return true, k.leave(o, k.stateOf(o, live), why)
}

// leave ends the ownership of an object that an uninstall leaves in place. An object that must
// not be changed stays as it is, unless the garbage collector would delete it.
func (k *kubeClient) leave(o apply.Object, state apply.State, why string) error {
	if o.GetNamespace() == k.Namespace {
		if err := k.keepNamespace(); err != nil {
			return err
		}
	}
	live, err := k.objects.Release(k.ctx, o, k.Owner, state.UID, true)
	switch answer := apply.AnswerOf(err); {
	case (answer == apply.Forbidden || answer == apply.Refused) && !state.Referred:
		k.inventory.Remove(state)
		why = fmt.Sprintf("%s; without the label %s: %v", why, api.LabelLeft, err)
	case err != nil:
		return err
	case live == nil || live.UID != state.UID:
		k.inventory.Remove(state)
		return nil
	default:
		k.inventory.Put(apply.StateOf(o.Mapping.GroupVersionKind.GroupKind(), live))
	}
	k.unowned.Insert(state.Key)
	k.left[state.Key] = why
	return nil
}

// namedLeft is the number of objects that an event names.
const namedLeft = 5

// reportLeft emits one event about the objects that stay.
func (k *kubeClient) reportLeft() {
	if len(k.left) == 0 {
		return
	}
	var names []string
	for _, key := range sortedKeys(k.left) {
		names = append(names, fmt.Sprintf("%s (%s)", key, k.left[key]))
	}
	more := ""
	if len(names) > namedLeft {
		names, more = slices.Clip(names[:namedLeft]), fmt.Sprintf(", and %d more", len(names)-namedLeft)
	}
	k.reportOnce(api.EventObjectLeft, fmt.Sprintf("Not deleted, and no longer part of the release: %s%s. A new %s %s adopts them; to list them, run: kubectl chartwright list --left",
		strings.Join(names, ", "), more, k.Owner.GVK.Kind, k.Owner.Name))
}
