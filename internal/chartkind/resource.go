package chartkind

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/watches"
)

// GVK is the kind of a ChartKind, and GVR its resource.
var (
	GVK = schema.GroupVersionKind{Group: api.Domain, Version: "v1alpha1", Kind: "ChartKind"}
	GVR = GVK.GroupVersion().WithResource("chartkinds")
)

// Finalizer keeps a deleted ChartKind until its custom resources are deleted.
const Finalizer = api.Domain + "/chart-kind"

// AnnotationHost is the host that may receive the credentials of a Secret.
const AnnotationHost = api.Domain + "/host"

const (
	// DefaultInterval is how often the operator checks for a newer chart.
	DefaultInterval = 10 * time.Minute
	// DefaultOperator is the operator that serves a ChartKind which names none.
	DefaultOperator = "chartwright"
)

// ChartKind is one kind that the operator serves with a chart from a registry.
type ChartKind struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`

	// entry is the rest of the spec: fields of an entry of a watches file.
	entry map[string]any
}

// Spec is the part of the spec that an entry of a watches file does not have.
type Spec struct {
	// Operator is the name of the operator that serves the kind; empty means
	// DefaultOperator.
	Operator string `json:"operator,omitempty"`
	Chart    Chart  `json:"chart"`
	Names    Names  `json:"names"`
	// InstallCRD installs the kind's CRD if it is missing, and updates it with the chart.
	InstallCRD     bool           `json:"installCRD,omitempty"`
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Chart is where the chart comes from. Exactly one of OCI, URL and Repo is set.
type Chart struct {
	// OCI is a chart in a registry, as oci://host/path.
	OCI string `json:"oci,omitempty"`
	// URL is the address of an archive.
	URL string `json:"url,omitempty"`
	// Repo is the address of a chart repository, and Name a chart there.
	Repo string `json:"repo,omitempty"`
	Name string `json:"name,omitempty"`
	// Version is a version or a constraint such as 1.x; empty means the newest version.
	Version string `json:"version,omitempty"`
	// Digest is the only accepted digest.
	Digest string `json:"digest,omitempty"`
	// SecretRef is a Secret with credentials, in the namespace of the operator.
	SecretRef *SecretRef `json:"secretRef,omitempty"`
	// Interval is how often to check for a newer chart; nil means DefaultInterval.
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// SecretRef names a Secret in the namespace of the operator.
type SecretRef struct {
	Name string `json:"name"`
}

// Names are the names of the kind.
type Names struct {
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Kind       string   `json:"kind"`
	Plural     string   `json:"plural,omitempty"`
	Singular   string   `json:"singular,omitempty"`
	ShortNames []string `json:"shortNames,omitempty"`
	Categories []string `json:"categories,omitempty"`
	Scope      string   `json:"scope,omitempty"`
}

// DeletionPolicy is what to do when a ChartKind is deleted while custom resources exist.
type DeletionPolicy string

// Values of DeletionPolicy.
const (
	// DeletionWait: the ChartKind remains, and the kind is served, until the last custom
	// resource is deleted. It is the default.
	DeletionWait DeletionPolicy = "Wait"
	// DeletionOrphan: the operator stops serving the kind. Custom resources and releases
	// remain.
	DeletionOrphan DeletionPolicy = "Orphan"
)

// Status is the status of a ChartKind.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	// Chart is the chart that the operator serves.
	Chart *ServedChart `json:"chart,omitempty"`
}

// ServedChart is a chart of a certain version.
type ServedChart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Source  string `json:"source"`
}

// Parse decodes a ChartKind.
func Parse(object *unstructured.Unstructured) (ChartKind, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return ChartKind{}, fmt.Errorf("read the ChartKind %s: %w", object.GetName(), err)
	}
	var c ChartKind
	if err := json.Unmarshal(data, &c); err != nil {
		return ChartKind{}, fmt.Errorf("read the ChartKind %s: %w", object.GetName(), err)
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return ChartKind{}, fmt.Errorf("read the ChartKind %s: %w", object.GetName(), err)
	}
	for _, key := range ownKeys {
		delete(spec, key)
	}
	c.entry = spec
	return c, nil
}

// OperatorName returns Operator or its default.
func (s Spec) OperatorName() string { return cmp.Or(s.Operator, DefaultOperator) }

// Orphans reports whether a deletion keeps the custom resources and their releases.
func (s Spec) Orphans() bool { return s.DeletionPolicy == DeletionOrphan }

// CheckInterval returns Interval or its default.
func (c Chart) CheckInterval() time.Duration {
	return ptr.Deref(c.Interval, metav1.Duration{Duration: DefaultInterval}).Duration
}

// Reference returns where to fetch the chart.
func (c Chart) Reference() source.Reference {
	return source.Reference{
		OCI: strings.TrimPrefix(c.OCI, "oci://"), URL: c.URL, Repo: c.Repo, Name: c.Name, Version: c.Version, Digest: c.Digest,
	}
}

// Resource returns the resource of the kind that the ChartKind adds.
func (c ChartKind) Resource() schema.GroupResource {
	names := c.Spec.Names
	return crd.Resource(catalog.Kind{Watch: watches.Watch{Group: names.Group, Kind: names.Kind, Singular: names.Singular, Plural: names.Plural}})
}

// GroupKind returns the kind that the ChartKind adds.
func (c ChartKind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: c.Spec.Names.Group, Kind: c.Spec.Names.Kind}
}

// Precedes reports whether another ChartKind defines the same kind or the same resource as
// this one, and the operator serves this one because it is older.
func (c ChartKind) Precedes(other ChartKind) bool {
	if c.Spec.OperatorName() != other.Spec.OperatorName() || c.Spec.Names.Group != other.Spec.Names.Group {
		return false
	}
	if c.Spec.Names.Kind != other.Spec.Names.Kind && c.Resource() != other.Resource() {
		return false
	}
	return cmp.Or(c.CreationTimestamp.Compare(other.CreationTimestamp.Time), cmp.Compare(c.Name, other.Name)) < 0
}
