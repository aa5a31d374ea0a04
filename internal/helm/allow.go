package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	helmkube "helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// allow is a kind's allow block. Charts are trusted and specs are not: values
// must not steer a release to where its owner has no business.
type allow struct {
	watches.Allow

	// signingKey is the Secret of the operator's signing key. Whoever can change
	// or read it can forge release records.
	signingKey types.NamespacedName
}

// check refuses objects outside the release's namespace, unless the block
// says otherwise. It names every one of them, and the rule.
func (a allow) check(namespace string, objects helmkube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		if why := a.refusesBuilt(namespace, info); why != "" {
			refused = append(refused, why)
		}
	}
	return joinReasons(ErrNotAllowed, refused)
}

// refusesBuilt is refuses for an object that was built from a manifest.
func (a allow) refusesBuilt(namespace string, info *resource.Info) string {
	if a.reachesSigningKey(info) {
		return fmt.Sprintf("%s names Secret %s, which holds the operator's signing key: use another name", apply.Describe(object(info).Unstructured), a.signingKey)
	}
	return a.refusesObject(namespace, object(info))
}

// reachesSigningKey reports whether an object is the Secret of the signing key, or
// could read it for somebody else: a pod that mounts the Secret, a role that
// allows reading it, a resource of a third party that copies it.
func (a allow) reachesSigningKey(info *resource.Info) bool {
	return a.signingKey.Name != "" && (info.Namespace == "" || info.Namespace == a.signingKey.Namespace) &&
		mentions(object(info).Object, a.signingKey.Name)
}

// mentions reports whether a key or a text within a value contains a text.
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

// refusesObject is refuses for an object that was found in the cluster.
func (a allow) refusesObject(namespace string, o apply.Object) string {
	return a.refuses(namespace, o.Unstructured, o.Mapping.Scope.Name() == meta.RESTScopeNameNamespace)
}

// refuses returns the rule that forbids an object of a release, empty if none does.
// A namespaced object without a namespace is in the namespace of the release.
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

// clusterScoped reports whether a release may have objects of a kind without a
// namespace.
func (a allow) clusterScoped(kind schema.GroupKind) bool {
	return a.Everything || slices.Contains(a.ClusterScoped, kind.String())
}

// Refused returns why the operator would refuse an object that was rendered
// offline for a release in a namespace, by which rule of the block; nothing if
// it would not.
func Refused(o chart.RenderedObject, block watches.Allow, namespace string, clusterScoped bool) string {
	return allow{Allow: block}.refuses(namespace, o.Unstructured, !clusterScoped)
}

// conflictHint says what could be done about an object that is another's.
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

// What a record says is done within the kind's rules, as what is rendered is:
// records are Secrets of a namespace, and whoever may write there may write
// them. What is to be written against a rule is refused. What goes must go,
// though the rules may have become narrower since it was made, and there such
// objects are left out, unless the operator has made them.

// filterRefused leaves out every object that is against the rules.
func (k *kubeClient) filterRefused(objects helmkube.ResourceList) (helmkube.ResourceList, error) {
	return k.filter(objects, func(info *resource.Info) (string, error) {
		return k.allow.refusesBuilt(k.Namespace, info), nil
	})
}

// filter returns the objects against which nothing speaks, and tells of the
// others.
func (k *kubeClient) filter(objects helmkube.ResourceList, against func(*resource.Info) (string, error)) (helmkube.ResourceList, error) {
	var kept helmkube.ResourceList
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

// whyProtected says why an object must not be deleted, nothing if it may be: it is
// against the rules, and the operator has not made it. What cannot be read
// counts as such; it could not be deleted either. Nothing tells of a hook that
// it was made by applying it.
func (k *kubeClient) whyProtected(info *resource.Info) (why string, err error) {
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

// reportSkipped reports, once, what is left out, and by which rule.
func (k *kubeClient) reportSkipped(info *resource.Info, why string) {
	reason, what := api.EventObjectLeft, why+"; it is left as it is, for the operator has not made it"
	if isHook(info) {
		reason, what = api.EventHooksSkipped, why+"; the hook is skipped"
	}
	k.reportOnce(reason, what)
}

// reportUnowned reports, once, that an object is not deleted, and why.
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

// mayReadPods refuses to read pods where hooks have no business.
func (k *kubeClient) mayReadPods(namespace string) error {
	if namespace == k.Namespace || k.allow.Everything || k.allow.OtherNamespaces {
		return nil
	}
	return fmt.Errorf("%w: namespace %s is not the release's (allow.otherNamespaces is false)", ErrNotAllowed, namespace)
}
