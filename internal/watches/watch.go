package watches

import (
	"bytes"
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
	// DefaultMaxHistory is the number of deployed revisions to keep.
	DefaultMaxHistory = 10
	// DefaultTimeout limits the duration of each hook.
	DefaultTimeout = 5 * time.Minute
	// DefaultRetries is the number of attempts that may fail before a rollback.
	DefaultRetries = 3
	// DefaultProgressDeadline is how long the resources may take to become ready.
	DefaultProgressDeadline = 10 * time.Minute
)

// Watch is one entry of watches.yaml.
type Watch struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// Chart is the path of a chart folder or .tgz, relative to the watches file.
	Chart string `json:"chart"`
	// Source is where the chart was fetched; nil means that it is the user's own.
	Source *Source `json:"source,omitempty"`

	// WatchDependentResources enables drift correction; nil means true.
	WatchDependentResources *bool `json:"watchDependentResources,omitempty"`
	// OverrideValues take precedence over the spec. Keys are paths as in helm's --set.
	// Values are expanded from the environment and as templates.
	OverrideValues OverrideValues `json:"overrideValues,omitempty"`
	// ValuesFrom are sources of values. They take precedence over the spec, later ones over
	// earlier ones, and OverrideValues over all of them.
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// DependsOn are objects that must be ready before a custom resource is installed or
	// upgraded.
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Selector limits the entry to custom resources with these labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// ReconcilePeriod is how often all resources of a release are applied again; nil means
	// the value of the flag, 0 means never.
	ReconcilePeriod *metav1.Duration `json:"reconcilePeriod,omitempty"`
	// MaxConcurrentReconciles is the number of workers; nil means the value of the flag.
	MaxConcurrentReconciles *int `json:"maxConcurrentReconciles,omitempty"`
	// DryRunOption is accepted for compatibility with the operator-sdk and has no effect:
	// Chartwright needs no dry run to detect changes, and lookup works in every rendering.
	DryRunOption string `json:"dryRunOption,omitempty"`
	// MaxHistory is the number of deployed revisions to keep; nil means DefaultMaxHistory.
	MaxHistory *int `json:"maxHistory,omitempty"`
	// Timeout limits the duration of each hook; nil means DefaultTimeout.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// ProgressDeadline is how long the resources of a new revision may take to become
	// ready; nil means DefaultProgressDeadline.
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`
	// OnFailure is what to do when an upgrade fails repeatedly; empty means OnFailureRetry.
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// Retries is the number of attempts of an upgrade that may fail before
	// OnFailureRollback rolls back; nil means DefaultRetries.
	Retries *int `json:"retries,omitempty"`

	// Allow limits what the chart may do outside the namespace of the release. The zero
	// value allows nothing there.
	Allow Allow `json:"allow,omitzero"`
	// Rollout configures upgrades to a new chart.
	Rollout Rollout `json:"rollout,omitzero"`
	// Drift configures drift correction.
	Drift Drift `json:"drift,omitzero"`
	// Guard configures which deletions of resources need an approval.
	Guard Guard `json:"guard,omitzero"`
	// Approval is which upgrades need an approval; empty means ApprovalData.
	Approval Approval `json:"approval,omitempty"`
	// Uninstall configures what an uninstall deletes in addition to the managed resources.
	Uninstall Uninstall `json:"uninstall,omitzero"`
	// Numbers is the type of the numbers that templates get; see IntegerNumbers.
	Numbers NumberMode `json:"numbers,omitempty"`
	// CRDs is what to do with the chart's crds/; empty means CRDsCreate.
	CRDs CRDPolicy `json:"crds,omitempty"`
	// Scope is the scope of the kind; empty means ScopeNamespaced.
	Scope Scope `json:"scope,omitempty"`
	// Plural and Singular are names of the kind in API paths and for kubectl. The defaults
	// are derived from the kind by English rules.
	Plural   string `json:"plural,omitempty"`
	Singular string `json:"singular,omitempty"`
	// Versions are the versions of the kind's CRD; none means only Version.
	Versions []CRDVersion `json:"versions,omitempty"`
	// Subresources are the subresources of the kind's CRD.
	Subresources Subresources `json:"subresources,omitzero"`
	// Status adds fields to the status: for each field name an expression in CEL.
	Status map[string]string `json:"status,omitempty"`
	// Observe names objects that these expressions read in addition to the managed
	// resources.
	Observe []Observe `json:"observe,omitempty"`
	// Outputs are results of a release that other custom resources can use.
	Outputs []Output `json:"outputs,omitempty"`
	// Health determines when managed resources are ready, by kind.
	Health []HealthRule `json:"health,omitempty"`
	// AdditionalPrinterColumns replace the default columns of kubectl get.
	AdditionalPrinterColumns []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns,omitempty"`
	// ShortNames and Categories are alternative names of the kind for kubectl.
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	// ReleaseNamespace is the namespace of the release; empty means that of the custom
	// resource. It may be a template over the custom resource. A kind of scope Cluster
	// requires it.
	ReleaseNamespace string `json:"releaseNamespace,omitempty"`
	// CreateNamespace is "true" if an install creates the release's namespace when it is
	// missing and an uninstall deletes it again; empty means "false". It may be a template
	// over the custom resource.
	CreateNamespace BoolOrTemplate `json:"createNamespace,omitempty"`
	// ServiceAccountName is a ServiceAccount in the namespace of the release that the
	// operator impersonates to write managed resources; empty means that it uses its own.
	// It may be a template over the metadata of the custom resource.
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// RBAC are rules that the chart needs and that cannot be derived from it.
	RBAC []RBACRule `json:"rbac,omitempty"`
	// FormerManagers are field managers, in addition to Helm's, whose fields an adoption
	// takes over.
	FormerManagers []string `json:"formerManagers,omitempty"`

	// OperatorSDK is set for an entry of the operator-sdk, also with keys of Chartwright; see
	// OperatorSDKStyle.
	OperatorSDK bool `json:"-"`

	// Problems are those of the entry, with which its kind cannot be served; nil if there are
	// none.
	Problems LineErrors `json:"-"`

	// File and Line are where the entry begins, for errors.
	File string `json:"-"`
	Line int    `json:"-"`
	// Lines are the lines of the entry's keys and items by their paths, such as chart,
	// status.phase or health[0].ready. Paths have at most three parts.
	Lines map[string]int `json:"-"`
}

// GVK returns the kind of the entry.
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

// IntegerNumbers reports whether templates get whole numbers as int64: Numbers or its
// default, which is NumbersInteger for an entry of the operator-sdk and NumbersHelm otherwise.
func (w Watch) IntegerNumbers() bool {
	return w.Numbers == NumbersInteger || w.Numbers == "" && w.OperatorSDK
}

// FailureRetries returns how many attempts of an upgrade may fail before a rollback, 0 if
// the operator never rolls back.
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

// NamespaceFromSpec reports whether a template over the custom resource determines the
// namespace of its release.
func (w Watch) NamespaceFromSpec() bool { return IsTemplate(w.ReleaseNamespace) }

// BeyondNamespace returns why custom resources of the kind can have effects outside their
// own namespaces, empty if they cannot.
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
	case w.Allow.DependsOn.OtherNamespaces:
		return "allow.dependsOn.otherNamespaces is true"
	default:
		return ""
	}
}

// OverrideValues are texts by path. A number or a boolean may be written without quotes, as
// for the operator-sdk, and means its text.
type OverrideValues map[string]string

// UnmarshalJSON decodes an object of scalars.
func (o *OverrideValues) UnmarshalJSON(data []byte) error {
	var written map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	// The text of 1000000 is not 1e+06.
	decoder.UseNumber()
	if err := decoder.Decode(&written); err != nil {
		return err
	}
	texts := make(OverrideValues, len(written))
	for path, value := range written {
		switch value := value.(type) {
		case nil:
			texts[path] = ""
		case string:
			texts[path] = value
		case bool:
			texts[path] = strconv.FormatBool(value)
		case json.Number:
			texts[path] = value.String()
		default:
			return fmt.Errorf("%s: expected a string, a number or a boolean", path)
		}
	}
	*o = texts
	return nil
}

// BoolOrTemplate is a string that may also be written as a boolean.
type BoolOrTemplate string

// UnmarshalJSON decodes a string or a boolean.
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
