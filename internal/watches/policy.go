package watches

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

// Allow says where a chart may act beyond the release's own namespace. Charts
// are trusted and specs are not, and values may steer a chart.
type Allow struct {
	// OtherNamespaces allows objects in other namespaces.
	OtherNamespaces bool `json:"otherNamespaces,omitempty"`
	// ClusterScoped are the cluster-scoped kinds, "<kind>.<group>", that are
	// allowed.
	ClusterScoped []string `json:"clusterScoped,omitempty"`
	// Lookup says what templates may read by lookup; empty means LookupOwn.
	Lookup LookupScope `json:"lookup,omitempty"`
	// LookupInValues lets texts of the values that go through tpl use lookup,
	// too, as far as Lookup lets templates.
	LookupInValues bool `json:"lookupInValues,omitempty"`
	// TakeOwnership says whether a release may take over objects of others;
	// empty means TakeOwnershipNever.
	TakeOwnership TakeOwnership `json:"takeOwnership,omitempty"`
	// SystemNamespaces are the namespaces of the cluster and of the operator to
	// which a releaseNamespace that is a template may send releases.
	SystemNamespaces []string `json:"systemNamespaces,omitempty"`

	// Everything: nothing is said, in an entry of the operator-sdk's, and objects
	// may go, and templates read, where the operator may; see OperatorSDKStyle.
	Everything bool `json:"-"`
}

// LookupScope returns Lookup or its default.
func (a Allow) LookupScope() LookupScope {
	if a.Everything {
		return LookupAll
	}
	return cmp.Or(a.Lookup, LookupOwn)
}

// LookupsInValues reports whether texts that go through tpl may use lookup. In
// an entry of the operator-sdk's they may, as there.
func (a Allow) LookupsInValues() bool { return a.Everything || a.LookupInValues }

// TakeOwnership is whether objects of others may be taken over.
type TakeOwnership string

// Ways to take over.
const (
	// TakeOwnershipNever: an object of another release, or of nobody, is a
	// conflict.
	TakeOwnershipNever TakeOwnership = "never"
	// TakeOwnershipOnRequest: the annotation take-ownership of a custom
	// resource takes it over, unless a living custom resource has it.
	TakeOwnershipOnRequest TakeOwnership = "onRequest"
)

// OnFailure is what to do where an upgrade fails again and again.
type OnFailure string

// Answers to failure.
const (
	// OnFailureRetry: try again, ever more slowly, and never give up.
	OnFailureRetry OnFailure = "Retry"
	// OnFailureRollback: go back to the last good revision, and hold it.
	OnFailureRollback OnFailure = "Rollback"
)

// LookupScope is how far templates may read.
type LookupScope string

// Lookup scopes.
const (
	// LookupNone: a template that calls lookup fails.
	LookupNone LookupScope = "none"
	// LookupOwn: the release's namespace.
	LookupOwn LookupScope = "own"
	// LookupAll: whatever the operator, or the service account, may read.
	LookupAll LookupScope = "all"
)

// Drift says what to do about dependents that somebody has damaged.
type Drift struct {
	// Mode is what to do; empty means DriftRepair.
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore are fields that others may change.
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftMode is what to do about drift.
type DriftMode string

// Drift modes.
const (
	// DriftRepair: apply the damaged object again, at once.
	DriftRepair DriftMode = "Repair"
	// DriftWarn: say so in the condition Drifted and in an event.
	DriftWarn DriftMode = "Warn"
	// DriftDisabled: do not look.
	DriftDisabled DriftMode = "Disabled"
)

// DriftIgnore names fields of objects that are set when the object is made and
// are others' afterwards. Empty selectors match every object.
type DriftIgnore struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Name       string `json:"name,omitempty"`
	// Paths are JSON pointers, such as /spec/replicas.
	Paths []string `json:"paths,omitempty"`
}

// CRDPolicy says what to do with a chart's crds/.
type CRDPolicy string

// CRD policies.
const (
	// CRDsCreate: create those that are missing, as Helm does.
	CRDsCreate CRDPolicy = "Create"
	// CRDsReplace: also update those that were created here.
	CRDsReplace CRDPolicy = "Replace"
	// CRDsSkip: leave them to others.
	CRDsSkip CRDPolicy = "Skip"
)

// Scope is whether custom resources of a kind live in namespaces.
type Scope string

// Scopes.
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

// checkEnum reports a value that is neither empty nor one of those allowed.
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
	checkEnum(p, w.Lines["crds"], "crds", w.CRDs, CRDsCreate, CRDsReplace, CRDsSkip)
	checkEnum(p, w.Lines["scope"], "scope", w.Scope, ScopeNamespaced, ScopeCluster)
	if w.Scope == ScopeCluster && w.ReleaseNamespace == "" {
		p.problemf(w.Lines["scope"], "scope is Cluster and there is no releaseNamespace: say where releases go, for example releaseNamespace: \"{{ .spec.targetNamespace }}\"")
	}
	if w.CreateNamespace != "" && w.ReleaseNamespace == "" {
		p.problemf(w.Lines["createNamespace"], "createNamespace is set and there is no releaseNamespace: the resource's own namespace is always there")
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
			switch segments := strings.Split(path, "/"); {
			case len(path) < 2 || path[0] != '/':
				p.problemf(w.Lines["drift"], "%s.paths: %q is no JSON pointer such as /spec/replicas", at, path)
			case slices.ContainsFunc(segments[1:], func(s string) bool { return strings.Trim(s, "0123456789") == "" }):
				p.problemf(w.Lines["drift"], "%s.paths: %q leads into a list: a field of a list's item cannot be left to others", at, path)
			}
		}
	}
}

// checkFailurePolicy reports what cannot be done about failure.
func (p *parser) checkFailurePolicy(w *Watch) {
	checkEnum(p, w.Lines["onFailure"], "onFailure", w.OnFailure, OnFailureRetry, OnFailureRollback)
	if w.ProgressDeadline != nil && w.ProgressDeadline.Duration <= 0 {
		p.problemf(w.Lines["progressDeadline"], "progressDeadline is %s: expected more than 0, for example 10m", w.ProgressDeadline.Duration)
	}
	if w.Retries != nil && (*w.Retries < 1 || w.OnFailure != OnFailureRollback) {
		p.problemf(w.Lines["retries"], "retries is %d: expected 1 or more, beside onFailure: Rollback", *w.Retries)
	}
}
