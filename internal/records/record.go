package records

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// Labels that Helm puts on its release Secrets.
const (
	LabelName    = "name"
	LabelOwner   = "owner"
	LabelStatus  = "status"
	LabelVersion = "version"

	// OwnerHelm is the value of LabelOwner on every release record.
	OwnerHelm = "helm"
	// SecretType is the type of the Secrets.
	SecretType = "helm.sh/release.v1"
)

// AnnotationRelease holds Description as JSON.
const AnnotationRelease = api.Domain + "/release"

// Description is what a person wants to know of a revision and its labels do
// not tell. It is empty on records that others wrote.
type Description struct {
	Chart        string      `json:"chart,omitempty"`
	ChartVersion string      `json:"chartVersion,omitempty"`
	AppVersion   string      `json:"appVersion,omitempty"`
	Deployed     metav1.Time `json:"deployed,omitzero"`
	Description  string      `json:"description,omitempty"`
}

// Record is what is known of one stored revision.
type Record struct {
	Namespace string
	// Secret is the name of the Secret that holds the revision.
	Secret          string
	UID             types.UID
	ResourceVersion string
	Created         time.Time

	Release  string
	Revision int
	Status   string

	// OwnerUID is the UID of the custom resource that the release belongs to;
	// empty on records that no Chartwright operator began.
	OwnerUID types.UID
	// Owner names that custom resource: "<kind>.<group>/<namespace>/<name>".
	Owner    string
	Operator string
	Action   string

	InputDigest string
	ChartDigest string

	Description

	// writtenFor is the revision in our own label.
	writtenFor int
}

// Genuine tells whether a Chartwright operator wrote the revision. The helm CLI
// copies our labels to the revisions that it makes; their digests are void.
func (r Record) Genuine() bool {
	return r.OwnerUID != "" && r.writtenFor == r.Revision
}

// FromMeta reads a record from the metadata of its Secret. It returns false
// where the Secret is no release record.
func FromMeta(m metav1.Object) (Record, bool) {
	labels := m.GetLabels()
	revision, err := strconv.Atoi(labels[LabelVersion])
	if err != nil || labels[LabelOwner] != OwnerHelm || labels[LabelName] == "" {
		return Record{}, false
	}
	r := Record{
		Namespace:       m.GetNamespace(),
		Secret:          m.GetName(),
		UID:             m.GetUID(),
		ResourceVersion: m.GetResourceVersion(),
		Created:         m.GetCreationTimestamp().Time,
		Release:         labels[LabelName],
		Revision:        revision,
		Status:          labels[LabelStatus],
		OwnerUID:        types.UID(labels[api.LabelOwnerUID]),
		Owner:           m.GetAnnotations()[api.AnnotationOwner],
		Operator:        labels[api.LabelOperator],
		Action:          labels[api.LabelAction],
		InputDigest:     labels[api.LabelInputDigest],
		ChartDigest:     labels[api.LabelChartDigest],
	}
	// A value that is no number leaves 0, which no revision has.
	r.writtenFor, _ = strconv.Atoi(labels[api.LabelRevision])
	if text := m.GetAnnotations()[AnnotationRelease]; text != "" {
		// An annotation that somebody broke costs the description alone.
		_ = json.Unmarshal([]byte(text), &r.Description)
	}
	return r, true
}
