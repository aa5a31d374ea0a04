package helm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/watches"
)

// ErrNotAllowed marks an action that ended before anything was written,
// because the kind's allow block in the watches file forbids what the chart
// would do with these values.
var ErrNotAllowed = errors.New("not allowed for this kind")

// allow is a kind's allow block. Charts are trusted and specs are not: values
// must not steer a release to where its owner has no business.
type allow watches.Allow

// check refuses objects outside the release's namespace, unless the block
// says otherwise. It names every one of them, and the rule.
func (a allow) check(namespace string, objects kube.ResourceList) error {
	var refused []string
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if info.Namespace != namespace && !a.OtherNamespaces {
				refused = append(refused, fmt.Sprintf("%s is outside the release's namespace %s (allow.otherNamespaces is false)", what, namespace))
			}
			continue
		}
		kind := info.Mapping.GroupVersionKind.GroupKind().String()
		if !slices.Contains(a.ClusterScoped, kind) {
			refused = append(refused, fmt.Sprintf("%s is cluster-scoped (allow.clusterScoped does not hold %s)", what, kind))
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w: %s", ErrNotAllowed, strings.Join(refused, "; "))
	}
	return nil
}

// wayOut says what could be done about an object that is another's.
func (k *kubeClient) wayOut() string {
	switch {
	case k.takeOwnership:
		return ""
	case k.allow.TakeOwnership == watches.TakeOwnershipOnRequest:
		return fmt.Sprintf("; to take it over, set the annotation %s to \"true\"", api.AnnotationTakeOwnership)
	default:
		return "; rename one of the two (allow.takeOwnership is never)"
	}
}
