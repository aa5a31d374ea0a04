package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Allow limits what a chart may do beyond the namespace of the release. Charts are trusted
// and specs are not, but values can influence what a chart does.
type Allow struct {
	// OtherNamespaces allows resources in other namespaces.
	OtherNamespaces bool `json:"otherNamespaces,omitempty"`
	// ClusterScoped are the allowed cluster-scoped kinds, as "<kind>.<group>".
	ClusterScoped []string `json:"clusterScoped,omitempty"`
	// Lookup is what templates may read by lookup; empty means LookupOwn.
	Lookup LookupScope `json:"lookup,omitempty"`
	// LookupInValues allows values that are rendered by tpl to use lookup, within the
	// limits of Lookup.
	LookupInValues bool `json:"lookupInValues,omitempty"`
	// TakeOwnership is whether a release may take over resources that it does not own;
	// empty means TakeOwnershipNever.
	TakeOwnership TakeOwnership `json:"takeOwnership,omitempty"`
	// SystemNamespaces are the namespaces of the cluster and of the operator that a
	// template in releaseNamespace may select.
	SystemNamespaces []string `json:"systemNamespaces,omitempty"`
	// DependsOn limits the dependencies of custom resources.
	DependsOn AllowDependsOn `json:"dependsOn,omitzero"`

	// Everything is set for an entry of the operator-sdk without an allow block. Resources
	// may then be in any namespace, and templates may read everything that the operator may
	// read; see OperatorSDKStyle.
	Everything bool `json:"-"`
}

// LookupScope returns Lookup or its default.
func (a Allow) LookupScope() LookupScope {
	if a.Everything {
		return LookupAll
	}
	return cmp.Or(a.Lookup, LookupOwn)
}

// Missing returns the lines that the block lacks of the needed access. Only OtherNamespaces,
// ClusterScoped and Lookup are compared. A block that allows everything lacks them, too, so
// that its entry can get a block of its own.
func (a Allow) Missing(need Allow) []string {
	var missing []string
	if need.OtherNamespaces && !a.OtherNamespaces {
		missing = append(missing, "otherNamespaces: true")
	}
	kinds := sets.List(sets.New(need.ClusterScoped...).Delete(a.ClusterScoped...))
	if len(kinds) > 0 {
		missing = append(missing, "clusterScoped: ["+strings.Join(kinds, ", ")+"]")
	}
	if need.Lookup == LookupAll && a.Lookup != LookupAll {
		missing = append(missing, "lookup: "+string(LookupAll))
	}
	return missing
}

// LookupsInValues reports whether values that are rendered by tpl may use lookup. In an
// entry of the operator-sdk they may.
func (a Allow) LookupsInValues() bool { return a.Everything || a.LookupInValues }

// TakeOwnership is whether a release may take over resources that it does not own.
type TakeOwnership string

// Values of TakeOwnership.
const (
	// TakeOwnershipNever: a resource that the release does not own is a conflict.
	TakeOwnershipNever TakeOwnership = "never"
	// TakeOwnershipOnRequest: the annotation take-ownership takes over resources, unless an
	// existing custom resource owns them.
	TakeOwnershipOnRequest TakeOwnership = "onRequest"
)

// OnFailure is what to do when an upgrade fails repeatedly.
type OnFailure string

// Values of OnFailure.
const (
	// OnFailureRetry: retry with increasing delays, without a limit.
	OnFailureRetry OnFailure = "Retry"
	// OnFailureRollback: roll back to the last good revision, and hold it.
	OnFailureRollback OnFailure = "Rollback"
)

// LookupScope is what templates may read.
type LookupScope string

// Values of LookupScope.
const (
	// LookupNone: a template that calls lookup fails.
	LookupNone LookupScope = "none"
	// LookupOwn: templates may read the namespace of the release.
	LookupOwn LookupScope = "own"
	// LookupAll: templates may read everything that the operator or the ServiceAccount may
	// read.
	LookupAll LookupScope = "all"
)

// Drift configures drift correction.
type Drift struct {
	// Mode is the drift mode; empty means DriftRepair.
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore are fields that other clients may change.
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftMode is what to do about drift.
type DriftMode string

// Values of DriftMode.
const (
	// DriftRepair: correct the drifted resource immediately.
	DriftRepair DriftMode = "Repair"
	// DriftWarn: report the drift in the condition Drifted and in an event.
	DriftWarn DriftMode = "Warn"
	// DriftDisabled: do not detect drift.
	DriftDisabled DriftMode = "Disabled"
)

// DriftIgnore names fields that are set when a resource is created and that other clients
// may change afterwards. Empty selectors match every resource.
type DriftIgnore struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Name       string `json:"name,omitempty"`
	// Paths are JSON pointers, such as /spec/replicas. An item of a list is an index, or one of its
	// fields, such as /webhooks/name=web.example.com/clientConfig/caBundle.
	Paths []string `json:"paths,omitempty"`
}

// NumberMode is the type of the numbers in values that templates get.
type NumberMode string

// Values of NumberMode.
const (
	// NumbersHelm: float64, as with helm's -f; whole numbers of overrideValues are int64, as
	// with --set.
	NumbersHelm NumberMode = "Helm"
	// NumbersInteger: whole numbers are int64, as for the operator-sdk.
	NumbersInteger NumberMode = "Integer"
)

// CRDPolicy is what to do with a chart's crds/.
type CRDPolicy string

// Values of CRDPolicy.
const (
	// CRDsCreate: create missing CRDs, as Helm does.
	CRDsCreate CRDPolicy = "Create"
	// CRDsReplace: also update CRDs that the operator has created.
	CRDsReplace CRDPolicy = "Replace"
	// CRDsSkip: do not create CRDs.
	CRDsSkip CRDPolicy = "Skip"
)

// Scope is whether the kind is namespaced or cluster-scoped.
type Scope string

// Values of Scope.
const (
	ScopeNamespaced Scope = "Namespaced"
	ScopeCluster    Scope = "Cluster"
)

// DriftMode returns the drift mode or its default. The operator-sdk's key
// watchDependentResources disables drift correction, too.
func (w Watch) DriftMode() DriftMode {
	if !ptr.Deref(w.WatchDependentResources, true) {
		return DriftDisabled
	}
	return cmp.Or(w.Drift.Mode, DriftRepair)
}

// checkEnum reports a value that is neither empty nor one of the allowed values.
func checkEnum[T ~string](p *parser, line int, key string, value T, allowed ...T) {
	if value != "" && !slices.Contains(allowed, value) {
		p.problemf(line, "%s is %q: expected one of %v", key, value, allowed)
	}
}

// checkPolicies reports unknown values, and keys that contradict each other.
func (p *parser) checkPolicies(w *Watch) {
	checkEnum(p, w.Lines["drift"], "drift.mode", w.Drift.Mode, DriftRepair, DriftWarn, DriftDisabled)
	checkEnum(p, w.Lines["allow"], "allow.lookup", w.Allow.Lookup, LookupNone, LookupOwn, LookupAll)
	checkEnum(p, w.Lines["allow"], "allow.takeOwnership", w.Allow.TakeOwnership, TakeOwnershipNever, TakeOwnershipOnRequest)
	for _, namespace := range w.Allow.SystemNamespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			p.problemf(w.Lines["allow"], "allow.systemNamespaces: %q is not the name of a namespace", namespace)
		}
	}
	checkEnum(p, w.Lines["numbers"], "numbers", w.Numbers, NumbersHelm, NumbersInteger)
	checkEnum(p, w.Lines["crds"], "crds", w.CRDs, CRDsCreate, CRDsReplace, CRDsSkip)
	checkEnum(p, w.Lines["scope"], "scope", w.Scope, ScopeNamespaced, ScopeCluster)
	if w.Scope == ScopeCluster && w.ReleaseNamespace == "" {
		p.problemf(w.Lines["scope"], "scope is Cluster, which requires releaseNamespace: add it, for example releaseNamespace: \"{{ .spec.targetNamespace }}\"")
	}
	if w.CreateNamespace != "" && w.ReleaseNamespace == "" {
		p.problemf(w.Lines["createNamespace"], "createNamespace requires releaseNamespace, because the namespace of the custom resource always exists: add releaseNamespace or remove createNamespace")
	}
	for i, ignore := range w.Drift.Ignore {
		at := fmt.Sprintf("drift.ignore[%d]", i)
		if _, err := schema.ParseGroupVersion(ignore.APIVersion); err != nil {
			p.problemf(w.Lines["drift"], "%s.apiVersion: %v", at, err)
		}
		if len(ignore.Paths) == 0 {
			p.problemf(w.Lines["drift"], "%s has no paths: add JSON pointers such as /spec/replicas", at)
		}
		for _, path := range ignore.Paths {
			if segments := strings.Split(path, "/"); len(segments) < 2 || segments[0] != "" || slices.Contains(segments[1:], "") {
				p.problemf(w.Lines["drift"], "%s.paths: %q is not a JSON pointer such as /spec/replicas", at, path)
			}
		}
	}
}

// checkFailurePolicy reports invalid values of onFailure and the keys that belong to it.
func (p *parser) checkFailurePolicy(w *Watch) {
	checkEnum(p, w.Lines["onFailure"], "onFailure", w.OnFailure, OnFailureRetry, OnFailureRollback)
	if w.ProgressDeadline != nil && w.ProgressDeadline.Duration <= 0 {
		p.problemf(w.Lines["progressDeadline"], "progressDeadline is %s: expected more than 0, for example 10m", w.ProgressDeadline.Duration)
	}
	if w.Retries != nil && (*w.Retries < 1 || w.OnFailure != OnFailureRollback) {
		p.problemf(w.Lines["retries"], "retries is %d: expected at least 1, together with onFailure: Rollback", *w.Retries)
	}
}
