package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/watches"
)

// allow is the allow block of a kind. Charts are trusted and specs are not: values must
// not make a chart write objects outside of the release's namespace.
type allow struct {
	watches.Allow

	// signingKey is the Secret of the operator's signing key. Anyone who can read or
	// change it can forge release records.
	signingKey types.NamespacedName
}

// check rejects objects that the block does not allow. The error lists each object and
// the rule.
func (a allow) check(namespace string, objects engine.ResourceList) error {
	var refused []string
	for _, info := range objects {
		if why := a.refusesBuilt(namespace, info); why != "" {
			refused = append(refused, why)
		}
	}
	return joinReasons(ErrNotAllowed, refused)
}

// refusesBuilt returns the reason why an object of a manifest is not allowed, or an
// empty string.
func (a allow) refusesBuilt(namespace string, info *resource.Info) string {
	if a.reachesSigningKey(info) {
		return fmt.Sprintf("%s names Secret %s, which holds the operator's signing key: use another name", apply.Describe(object(info).Unstructured), a.signingKey)
	}
	return a.refusesObject(namespace, object(info))
}

// reachesSigningKey reports whether an object is the Secret of the signing key or
// refers to it, like a pod that mounts the Secret, a role that allows reading it, or a
// third-party resource that copies it.
func (a allow) reachesSigningKey(info *resource.Info) bool {
	return a.signingKey.Name != "" && (info.Namespace == "" || info.Namespace == a.signingKey.Namespace) &&
		mentions(object(info).Object, a.signingKey.Name)
}

// mentions reports whether a value contains a text in a string or a key.
func mentions(value any, text string) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, text)
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return mentions(item, text) })
	case map[string]any:
		for key, item := range value {
			if strings.Contains(key, text) || mentions(item, text) {
				return true
			}
		}
	}
	return false
}

// refusesObject returns the rule that forbids an object in the cluster, or an empty
// string.
func (a allow) refusesObject(namespace string, o apply.Object) string {
	return a.refuses(namespace, o.Unstructured, o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace)
}

// refuses returns the rule that forbids an object of a release, or an empty string. A
// namespaced object without a namespace is in the namespace of the release.
func (a allow) refuses(namespace string, o *unstructured.Unstructured, namespaced bool) string {
	kind := o.GroupVersionKind().GroupKind()
	switch {
	case a.Everything:
		return ""
	case namespaced && cmp.Or(o.GetNamespace(), namespace) != namespace && !a.OtherNamespaces:
		return fmt.Sprintf("%s is outside the release's namespace %s (allow.otherNamespaces is false)", apply.Describe(o), namespace)
	case !namespaced && !a.clusterScoped(kind):
		return fmt.Sprintf("%s is cluster-scoped (allow.clusterScoped does not hold %s)", apply.Describe(o), kind)
	}
	return ""
}

// clusterScoped reports whether a release may contain cluster-scoped objects of a kind.
func (a allow) clusterScoped(kind schema.GroupKind) bool {
	return a.Everything || slices.Contains(a.ClusterScoped, kind.String())
}

// Refused returns the rule that forbids an object that was rendered offline, or an
// empty string.
func Refused(o chart.RenderedObject, block watches.Allow, namespace string, clusterScoped bool) string {
	return allow{Allow: block}.refuses(namespace, o.Unstructured, !clusterScoped)
}

// conflictHint returns what users can do about a foreign object.
func (k *kubeClient) conflictHint() string {
	switch {
	case k.TakeOwnership:
		return ""
	case k.allow.TakeOwnership == watches.TakeOwnershipOnRequest:
		return fmt.Sprintf("; to take it over, set the annotation %s to \"true\"", api.AnnotationTakeOwnership)
	default:
		return "; rename one of the two (allow.takeOwnership is never)"
	}
}

// The kind's rules also apply to the content of records, because users can write
// Secrets in the namespace of the release. A write that the rules forbid is rejected. A
// deletion must succeed even if the rules have become narrower, so forbidden objects
// are left out, unless the operator created them.

// filterRefused returns the objects that the rules allow.
func (k *kubeClient) filterRefused(objects engine.ResourceList) (engine.ResourceList, error) {
	return k.filter(objects, func(info *resource.Info) (string, error) {
		return k.allow.refusesBuilt(k.Namespace, info), nil
	})
}

// filter returns the objects that against accepts by returning an empty string. It
// reports the other objects.
func (k *kubeClient) filter(objects engine.ResourceList, against func(*resource.Info) (string, error)) (engine.ResourceList, error) {
	var kept engine.ResourceList
	for _, info := range objects {
		why, err := against(info)
		if err != nil {
			return nil, err
		}
		if why != "" {
			k.reportSkipped(info, why)
			continue
		}
		kept = append(kept, info)
	}
	return kept, nil
}

// protectedReason returns why an object must not be deleted, or an empty string: the rules
// forbid it, and the operator did not create it. An object that cannot be read could
// not be deleted either. A hook does not show that the operator created it.
func (k *kubeClient) protectedReason(info *resource.Info) (why string, err error) {
	why = k.allow.refusesBuilt(k.Namespace, info)
	if why == "" || isHook(info) {
		return why, nil
	}
	o := object(info)
	if _, managed := k.managed(apply.KeyOf(o)); managed {
		return "", nil
	}
	live, err := k.objects.Get(k.ctx, o)
	switch {
	case apierrors.IsForbidden(err):
		return why, nil
	case err != nil, live == nil, apply.Owns(live, k.Owner):
		return "", err
	}
	return why, nil
}

// reportSkipped emits one warning about an object that is left out.
func (k *kubeClient) reportSkipped(info *resource.Info, why string) {
	reason, what := api.EventObjectLeft, why+"; the object is not changed because the operator did not create it"
	if isHook(info) {
		reason, what = api.EventHooksSkipped, why+"; the hook is skipped"
	}
	k.reportOnce(reason, what)
}

// reportUnowned emits one warning about an object that is not deleted.
func (k *kubeClient) reportUnowned(o apply.Object, why string) {
	k.unowned.Insert(apply.KeyOf(o))
	k.reportOnce(api.EventObjectLeft, fmt.Sprintf("%s is not deleted: %s", apply.Describe(o.Unstructured), why))
}

func (k *kubeClient) reportOnce(reason, what string) {
	if k.reported.Has(what) {
		return
	}
	k.reported.Insert(what)
	k.log.printf("%s", what)
	k.Notifier.Warn(reason, what)
}

// mayReadPods returns an error if the rules do not allow hooks in a namespace.
func (k *kubeClient) mayReadPods(namespace string) error {
	if namespace == k.Namespace || k.allow.Everything || k.allow.OtherNamespaces {
		return nil
	}
	return fmt.Errorf("%w: namespace %s is not the release's (allow.otherNamespaces is false)", ErrNotAllowed, namespace)
}
