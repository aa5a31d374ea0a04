package watches

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Defaults of a watches entry.
const (
	// DefaultMaxHistory is the number of once deployed revisions that are kept.
	DefaultMaxHistory = 10
	// DefaultTimeout bounds each hook of an action.
	DefaultTimeout = 5 * time.Minute
	// DefaultRetries is how many tries may fail before a rollback.
	DefaultRetries = 3
	// DefaultProgressDeadline is how long objects may take to become ready.
	DefaultProgressDeadline = 10 * time.Minute
)

// Watch is one entry of watches.yaml.
type Watch struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Chart is the path of a chart's folder or .tgz, relative to the watches
	// file.
	Chart string `json:"chart"`

	// WatchDependentResources turns the repair of damaged dependents on; nil
	// means true.
	WatchDependentResources *bool `json:"watchDependentResources,omitempty"`
	// OverrideValues win over the spec. Keys are paths as in helm's --set;
	// values are expanded from the environment and as templates.
	OverrideValues map[string]string `json:"overrideValues,omitempty"`
	// ValuesFrom are objects that values come from: over the spec, in their
	// order, and under OverrideValues.
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// Selector limits the entry to custom resources with these labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// ReconcilePeriod is how often every object is applied again; nil means
	// what the flag says, 0 never.
	ReconcilePeriod *metav1.Duration `json:"reconcilePeriod,omitempty"`
	// MaxConcurrentReconciles is the number of workers; nil means what the
	// flag says.
	MaxConcurrentReconciles *int `json:"maxConcurrentReconciles,omitempty"`
	// DryRunOption is accepted for the operator-sdk's sake and has no effect:
	// no dry run is needed here to know whether to upgrade, and lookup works
	// in every render.
	DryRunOption string `json:"dryRunOption,omitempty"`
	// MaxHistory is the number of once deployed revisions that are kept; nil
	// means DefaultMaxHistory.
	MaxHistory *int `json:"maxHistory,omitempty"`
	// Timeout bounds each hook of an action; nil means DefaultTimeout.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// ProgressDeadline is how long the objects of a new revision may take to
	// become ready; nil means DefaultProgressDeadline.
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`
	// OnFailure says what to do where an upgrade fails again and again; empty
	// means OnFailureRetry.
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// Retries is how many tries of an upgrade may fail before OnFailureRollback
	// rolls it back; nil means DefaultRetries.
	Retries *int `json:"retries,omitempty"`

	// Allow says where the chart may act. The zero value allows nothing outside
	// the release's namespace.
	Allow Allow `json:"allow,omitzero"`
	// Rollout says how custom resources get a new chart.
	Rollout Rollout `json:"rollout,omitzero"`
	// Drift says what to do about damaged dependents.
	Drift Drift `json:"drift,omitzero"`
	// Uninstall says what an uninstall deletes beside the release's objects.
	Uninstall Uninstall `json:"uninstall,omitzero"`
	// CRDs says what to do with the chart's crds/; empty means Create.
	CRDs CRDPolicy `json:"crds,omitempty"`
	// Scope is the kind's scope; empty means ScopeNamespaced.
	Scope Scope `json:"scope,omitempty"`
	// Plural and Singular are names of the kind in paths and for kubectl; empty
	// means what English makes of the kind.
	Plural   string `json:"plural,omitempty"`
	Singular string `json:"singular,omitempty"`
	// Versions are those of the kind's CRD; none means Version alone.
	Versions []CRDVersion `json:"versions,omitempty"`
	// Subresources are those of the kind's CRD.
	Subresources Subresources `json:"subresources,omitzero"`
	// Status are fields of the kind's own in the status: for each name an
	// expression in CEL.
	Status map[string]string `json:"status,omitempty"`
	// Observe names objects that these expressions speak of, beside those of
	// the release.
	Observe []Observe `json:"observe,omitempty"`
	// Health tells when objects of the release are ready, by kind.
	Health []HealthRule `json:"health,omitempty"`
	// AdditionalPrinterColumns are what kubectl get shows, in place of the
	// usual columns.
	AdditionalPrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty"`
	// ShortNames and Categories are names by which kubectl finds the kind.
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	// ReleaseNamespace is where the release goes; empty means the custom
	// resource's namespace. It may be a template over the custom resource, and
	// a kind of scope Cluster needs it.
	ReleaseNamespace string `json:"releaseNamespace,omitempty"`
	// CreateNamespace is "true" where an install makes the release's namespace
	// if there is none, and an uninstall deletes it again; empty means "false".
	// It may be a template over the custom resource.
	CreateNamespace BoolOrTemplate `json:"createNamespace,omitempty"`
	// ServiceAccountName is an account of the release's namespace in whose
	// name the objects are written; empty means the operator's own. It may be
	// a template over the custom resource's metadata.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// RBAC are rights that the chart needs and that cannot be derived from it.
	RBAC []RBACRule `json:"rbac,omitempty"`
	// FormerManagers are more field managers, beside Helm's, whose fields are
	// taken over with a release that somebody else has made.
	FormerManagers []string `json:"formerManagers,omitempty"`

	// File and Line are where the entry begins, for errors.
	File string `json:"-"`
	Line int    `json:"-"`
	// Lines are the lines of the entry's keys and items by their paths, such as chart,
	// status.phase or health[0].ready. Paths have at most three parts.
	Lines map[string]int `json:"-"`
}

// GVK returns the kind that the entry serves.
func (w Watch) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// HistoryLimit returns MaxHistory or its default.
func (w Watch) HistoryLimit() int { return ptr.Deref(w.MaxHistory, DefaultMaxHistory) }

// ActionTimeout returns Timeout or its default.
func (w Watch) ActionTimeout() time.Duration {
	return ptr.Deref(w.Timeout, metav1.Duration{Duration: DefaultTimeout}).Duration
}

// ReadyWithin returns ProgressDeadline or its default.
func (w Watch) ReadyWithin() time.Duration {
	return ptr.Deref(w.ProgressDeadline, metav1.Duration{Duration: DefaultProgressDeadline}).Duration
}

// FailureRetries returns how many tries of an upgrade may fail before it is
// rolled back, 0 where it never is.
func (w Watch) FailureRetries() int {
	if w.OnFailure != OnFailureRollback {
		return 0
	}
	return ptr.Deref(w.Retries, DefaultRetries)
}

// ErrorAt returns an error with the line of the key at a path, see Lines. If the entry
// does not have the key, it is the line of the entry.
func (w Watch) ErrorAt(path, format string, args ...any) LineError {
	line, found := w.Lines[path]
	if !found {
		line = w.Line
	}
	return LineError{File: w.File, Line: line, Message: fmt.Sprintf(format, args...)}
}

// NamespaceFromSpec reports whether the author of a custom resource chooses the
// namespace of its release.
func (w Watch) NamespaceFromSpec() bool { return IsTemplate(w.ReleaseNamespace) }

// BeyondNamespace returns why custom resources of the kind can have effects
// outside their own namespaces, empty if they cannot.
func (w Watch) BeyondNamespace() string {
	switch {
	case w.Scope == ScopeCluster:
		return "the kind is cluster-scoped"
	case w.ReleaseNamespace != "":
		return "releaseNamespace sends releases to other namespaces"
	case w.Allow.Everything:
		return "the entry in watches.yaml has no allow block, and allows everything"
	case w.Allow.OtherNamespaces:
		return "allow.otherNamespaces is true"
	case len(w.Allow.ClusterScoped) > 0:
		return "allow.clusterScoped is set"
	case w.Allow.Lookup == LookupAll:
		return "allow.lookup is all"
	default:
		return ""
	}
}

// BoolOrTemplate is a text that may be written as a bool, too, for which people take
// "true" and "false".
type BoolOrTemplate string

// UnmarshalJSON reads a text or a bool.
func (t *BoolOrTemplate) UnmarshalJSON(data []byte) error {
	var written any
	if err := json.Unmarshal(data, &written); err != nil {
		return err
	}
	switch value := written.(type) {
	case nil:
	case string:
		*t = BoolOrTemplate(value)
	case bool:
		*t = BoolOrTemplate(strconv.FormatBool(value))
	default:
		return fmt.Errorf("expected true, false or a template, found %s", data)
	}
	return nil
}
