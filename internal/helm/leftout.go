package helm

import (
	"fmt"

	helmkube "helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// What a record says is done within the kind's rules, as what is rendered is:
// records are Secrets of a namespace, and whoever may write there may write
// them. What is to be written against a rule is refused. What goes must go,
// though the rules may have become narrower since it was made, and there such
// objects are left out, unless the operator has made them.

// allowed refuses objects that are against the rules.
func (k *kubeClient) allowed(objects helmkube.ResourceList) (helmkube.ResourceList, error) {
	return objects, k.allow.check(k.namespace, objects)
}

// leaveRefused leaves out every object that is against the rules.
func (k *kubeClient) leaveRefused(objects helmkube.ResourceList) (helmkube.ResourceList, error) {
	return k.leaveOut(objects, func(info *resource.Info) (string, error) {
		return k.allow.refusesBuilt(k.namespace, info), nil
	})
}

// leaveForeign leaves out of what is deleted, and of the hooks that run then,
// what is against the rules. Objects that the operator has made are deleted all
// the same.
func (k *kubeClient) leaveForeign(objects helmkube.ResourceList) (helmkube.ResourceList, error) {
	return k.leaveOut(objects, k.spares)
}

// leaveOut returns the objects against which nothing speaks, and tells of the
// others.
func (k *kubeClient) leaveOut(objects helmkube.ResourceList, against func(*resource.Info) (string, error)) (helmkube.ResourceList, error) {
	var kept helmkube.ResourceList
	for _, info := range objects {
		why, err := against(info)
		if err != nil {
			return nil, err
		}
		if why != "" {
			k.leave(info, why)
			continue
		}
		kept = append(kept, info)
	}
	return kept, nil
}

// spares says why an object must not be deleted, nothing if it may be: it is
// against the rules, and the operator has not made it. What cannot be read
// counts as such; it could not be deleted either. Nothing tells of a hook that
// it was made by applying it.
func (k *kubeClient) spares(info *resource.Info) (why string, err error) {
	why = k.allow.refusesBuilt(k.namespace, info)
	if why == "" || isHook(info) {
		return why, nil
	}
	o := object(info)
	if state, known := k.inventory.Get(apply.KeyOf(o)); known && state.Managed && state.Owner == k.owner.UID {
		return "", nil
	}
	live, err := k.objects.Get(k.ctx, o)
	switch {
	case apierrors.IsForbidden(err):
		return why, nil
	case err != nil || live == nil:
		return "", err
	}
	if apply.Owns(live, k.owner) {
		return "", nil
	}
	return why, nil
}

// leave tells, once, what is left out, and by which rule.
func (k *kubeClient) leave(info *resource.Info, why string) {
	reason, what := api.EventObjectLeft, why+"; it is left as it is, for the operator has not made it"
	if isHook(info) {
		reason, what = api.EventHooksSkipped, why+"; the hook is skipped"
	}
	k.reportOnce(reason, what)
}

// leaveUnowned reports, once, that an object is not deleted, and why.
func (k *kubeClient) leaveUnowned(o apply.Object, why string) {
	k.unowned[apply.KeyOf(o)] = true
	k.reportOnce(api.EventObjectLeft, fmt.Sprintf("%s is not deleted: %s", apply.Describe(o.Unstructured), why))
}

func (k *kubeClient) reportOnce(reason, what string) {
	if k.left[what] {
		return
	}
	k.left[what] = true
	k.log("%s", what)
	k.notifier.Warn(reason, what)
}

// mayReadPods refuses to read pods where hooks have no business.
func (k *kubeClient) mayReadPods(namespace string) error {
	if namespace == k.namespace || k.allow.Everything || k.allow.OtherNamespaces {
		return nil
	}
	return fmt.Errorf("%w: namespace %s is not the release's (allow.otherNamespaces is false)", ErrNotAllowed, namespace)
}
