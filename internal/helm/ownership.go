package helm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
)

// Helm looks whose an object is where an install or an upgrade would make it,
// and nowhere else: what a manifest of the release has named before is taken
// for its own. It may have been deleted meanwhile, and made by somebody else.

// refuseForeign refuses objects that are another's by now. Those that the
// inventory knows to be ours cost no request.
func (k *kubeClient) refuseForeign(objects kube.ResourceList) error {
	_, err := k.takeable(slices.DeleteFunc(slices.Clone(objects), func(info *resource.Info) bool {
		return k.knownAsOurs(apply.KeyOf(object(info)))
	}))
	return err
}

// takeable reads objects that are to become or to stay ours, as they are, and
// refuses those that are another's.
func (k *kubeClient) takeable(objects kube.ResourceList) (map[apply.Key]*metav1.PartialObjectMetadata, error) {
	found := make(map[apply.Key]*metav1.PartialObjectMetadata, len(objects))
	var foreign []string
	for _, info := range objects {
		o := object(info)
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return nil, err
		}
		if err := k.mayTake(live); err != nil {
			foreign = append(foreign, fmt.Sprintf("%s: %v", apply.Describe(o.Unstructured), err))
		}
		found[apply.KeyOf(o)] = live
		// The inventory may not know it yet.
		k.scaled[apply.KeyOf(o)] = live != nil && apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live).Scaled
	}
	if len(foreign) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrConflict, strings.Join(foreign, "; "))
	}
	return found, nil
}

// partForeign tells the objects that are another's by now from the rest. The
// error names the former.
func (k *kubeClient) partForeign(objects kube.ResourceList) (ours, foreign kube.ResourceList, err error) {
	var errs []error
	for _, info := range objects {
		o := object(info)
		if !k.knownAsOurs(apply.KeyOf(o)) {
			live, err := k.objects.Get(k.ctx, o)
			if err != nil {
				return nil, nil, err
			}
			if live != nil {
				err = k.ours(live)
			}
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

// knownAsOurs tells whether the inventory has an object as ours. One that
// somebody has changed may be another's although it has our label.
func (k *kubeClient) knownAsOurs(key apply.Key) bool {
	state, known := k.inventory.Get(key)
	return known && state.Ours && state.Owner == k.owner.UID && !k.inventory.Damaged(k.owner.UID, key)
}

// mayTake refuses an object that must not become ours, and says what could be
// done; nil stands for none. What a living custom resource has is never taken.
func (k *kubeClient) mayTake(live *metav1.PartialObjectMetadata) error {
	if live == nil {
		return nil
	}
	if err := apply.Belongs(live, k.owner); err != nil {
		return fmt.Errorf("%w; rename one of the two", err)
	}
	if err := k.ours(live); err != nil && !k.takeOwnership {
		return fmt.Errorf("%w%s", err, k.wayOut())
	}
	return nil
}

// ours refuses an object that somebody else has put in the place of ours.
func (k *kubeClient) ours(live *metav1.PartialObjectMetadata) error {
	if err := apply.Belongs(live, k.owner); err != nil {
		return err
	}
	name, namespace := live.Annotations["meta.helm.sh/release-name"], live.Annotations["meta.helm.sh/release-namespace"]
	if name != "" && (name != k.release || namespace != k.namespace) {
		return fmt.Errorf("%w: release %s/%s", apply.ErrForeign, namespace, name)
	}
	return nil
}

// among returns those of the objects that stand in one of the manifests, too.
func (k *kubeClient) among(objects kube.ResourceList, manifests []string) kube.ResourceList {
	stored := map[apply.Key]bool{}
	for _, manifest := range manifests {
		list, err := k.builder.build(strings.NewReader(manifest))
		if err != nil {
			// It names kinds that the server does not know: none of its objects is left.
			continue
		}
		for key := range keys(list) {
			stored[key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(objects), func(info *resource.Info) bool { return !stored[apply.KeyOf(object(info))] })
}
