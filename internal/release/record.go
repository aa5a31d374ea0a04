package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Labels that Helm puts on its release Secrets.
const (
	LabelName    = "name"
	LabelOwner   = "owner"
	LabelStatus  = "status"
	LabelVersion = "version"

	// OwnerHelm is the value of LabelOwner on every release record.
	OwnerHelm = "helm"
	// OwnerCorrupt is the value of LabelOwner on records that were set aside because
	// they cannot be decoded.
	OwnerCorrupt = "chartwright-damaged"
	// SecretType is the type of release Secrets.
	SecretType = "helm.sh/release.v1"
)

// AnnotationRelease holds Description as JSON.
const AnnotationRelease = api.Domain + "/release"

// Description describes a revision, in addition to the labels. It is empty on records
// of other programs.
type Description struct {
	Chart        string      `json:"chart,omitempty"`
	ChartVersion string      `json:"chartVersion,omitempty"`
	AppVersion   string      `json:"appVersion,omitempty"`
	Deployed     metav1.Time `json:"deployed,omitzero"`
	Description  string      `json:"description,omitempty"`
	// NoHooks reports that the revision has no hooks. Older records do not set it.
	NoHooks bool `json:"noHooks,omitempty"`
	// KeptNumbers are the fields that the numbers of the watches entry would change, so that
	// the release kept other numbers; empty if it has those of the entry.
	KeptNumbers string `json:"keptNumbers,omitempty"`
}

// setChart describes the chart of a release.
func (d *Description) setChart(rls *engine.Release) {
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		m := rls.Chart.Metadata
		d.Chart, d.ChartVersion, d.AppVersion = m.Name, m.Version, m.AppVersion
	}
}

// AnnotationLookups holds the results of the templates' lookups; see package helm.
const AnnotationLookups = api.Domain + "/lookups"

// AnnotationApproved holds the digest of the plan that was approved for the revision.
const AnnotationApproved = api.Domain + "/approved"

// AnnotationTested holds Tested as JSON.
const AnnotationTested = api.Domain + "/tested"

// Tested is the outcome of the chart's tests.
type Tested struct {
	Passed  bool        `json:"passed"`
	At      metav1.Time `json:"at,omitzero"`
	Message string      `json:"message,omitempty"`
}

// AnnotationInventory holds Inventory as JSON.
const AnnotationInventory = api.Domain + "/inventory"

// Inventory describes the objects of a deployed revision at the end of its action, so
// that another process knows which kinds to watch and which objects to expect.
type Inventory struct {
	// Digest is the result of apply.Digest.
	Digest string `json:"digest,omitempty"`
	// Kinds are "<group>/<version>/<kind>", or "<version>/<kind>" in the core group.
	Kinds []string `json:"kinds,omitempty"`
	// References is the number of objects with an ownerReference to the custom resource,
	// or nil if unknown.
	References *int `json:"references,omitempty"`
	// Finished holds the outcome, Complete or Failed, of finished Jobs with
	// ttlSecondsAfterFinished by "<namespace>/<name>". Digest does not cover these Jobs.
	Finished map[string]string `json:"finished,omitempty"`
	// Outside lists the objects outside of the release's namespace as
	// "<kind>.<group>/<namespace>/<name>". It is empty if there are too many, and on
	// records of older versions.
	Outside []string `json:"outside,omitempty"`
}

// GVKs returns the kinds. It ignores invalid entries.
func (i Inventory) GVKs() []schema.GroupVersionKind {
	var gvks []schema.GroupVersionKind
	for _, text := range i.Kinds {
		at := strings.LastIndexByte(text, '/')
		gv, err := schema.ParseGroupVersion(text[:max(at, 0)])
		if at < 0 || err != nil {
			continue
		}
		gvks = append(gvks, gv.WithKind(text[at+1:]))
	}
	return gvks
}

// KindNames returns the names of kinds for Inventory.Kinds.
func KindNames(gvks []schema.GroupVersionKind) []string {
	names := make([]string, len(gvks))
	for i, gvk := range gvks {
		names[i] = gvk.GroupVersion().String() + "/" + gvk.Kind
	}
	return names
}

// Record is the metadata of one stored revision.
type Record struct {
	Namespace string
	// Secret is the name of the Secret that holds the revision.
	Secret          string
	UID             types.UID
	ResourceVersion string
	// Changed is the time of the last write, in whole seconds.
	Changed time.Time

	Release  string
	Revision int
	Status   string

	// OwnerUID is the UID of the custom resource of the release. It is empty on records
	// that no Chartwright operator created.
	OwnerUID types.UID
	// Controller is the UID of the controller in the Secret's ownerReferences. The
	// operator-sdk sets the custom resource; Chartwright sets none.
	Controller types.UID
	// Owner identifies the custom resource: "<kind>.<group>/<namespace>/<name>".
	Owner    string
	Operator string

	InputDigest  string
	ChartDigest  string
	ValuesDigest string
	// Signature is the signature of the content. Only an action that reads the content
	// verifies it.
	Signature string

	Description
	Inventory Inventory
	// Lookups is the lookups annotation of a deployed revision.
	Lookups string
	// Marks are valid on the newest revision that is Written; see MarksOf.
	Marks Marks
	// NeverReady reports that another revision superseded this one before its objects
	// were ready.
	NeverReady bool
	// Tested is the result of the chart's tests on this revision, or nil if they did not
	// run.
	Tested *Tested

	// Integers reports that templates got whole numbers as int64, see values.Numbers. It is
	// meaningless on records of other programs.
	Integers bool

	// Approved is the digest of the plan that was approved for the revision, empty if it
	// needed no approval.
	Approved string

	// writtenFor is the revision in Chartwright's label.
	writtenFor int
}

// Genuine reports whether a Chartwright operator created the revision and was the last
// to write its record. The helm CLI copies Chartwright's labels to new revisions, where
// the digests are invalid. It drops the annotations of revisions that it changes, for
// example in an uninstall.
func (r Record) Genuine() bool { return r.Written() && r.Owner != "" }

// Stripped reports whether a revision of Chartwright has lost its annotations, because
// another program wrote its record last. "helm test" does so and changes nothing else
// of importance; whether that is so, only the content of the record shows.
func (r Record) Stripped() bool { return r.Written() && r.Owner == "" }

// withAnnotationsOf returns the record with the annotations of its previous state, until they are
// restored.
func (r Record) withAnnotationsOf(before Record) Record {
	r.Description, r.Inventory, r.Lookups, r.Tested, r.Approved = before.Description, before.Inventory, before.Lookups, before.Tested, before.Approved
	return r
}

// Written reports whether a Chartwright operator created the revision, whichever
// program wrote its record last. Other programs keep the labels.
func (r Record) Written() bool {
	return r.OwnerUID != "" && r.Revision > 0 && r.writtenFor == r.Revision
}

// WasDeployed reports whether the revision is or was deployed.
func (r Record) WasDeployed() bool {
	return r.Status == api.StatusDeployed || r.Status == api.StatusSuperseded
}

// WasGood reports whether the revision was deployed and, as far as known, became ready.
// An automatic rollback selects only such revisions.
func (r Record) WasGood() bool { return r.WasDeployed() && !r.NeverReady }

// changed returns when Helm or Chartwright last wrote a record.
func changed(m metav1.Object) time.Time {
	at := m.GetCreationTimestamp().Time
	for _, label := range []string{labelCreated, labelModified} {
		if seconds, err := strconv.ParseInt(m.GetLabels()[label], 10, 64); err == nil && time.Unix(seconds, 0).After(at) {
			at = time.Unix(seconds, 0)
		}
	}
	return at
}

// Labels that hold when Helm wrote a record, in Unix seconds.
const (
	labelCreated  = "createdAt"
	labelModified = "modifiedAt"
)

// SecretName returns the name of the Secret of a revision.
func SecretName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// FromMeta returns the record of a Secret with the given metadata. It returns false if
// the Secret is not a release record: the labels and the name must have the same
// release and revision, because a copy of a record keeps the labels.
func FromMeta(m metav1.Object) (Record, bool) {
	labels := m.GetLabels()
	revision, err := strconv.Atoi(labels[LabelVersion])
	if err != nil || labels[LabelOwner] != OwnerHelm || labels[LabelName] == "" || m.GetName() != SecretName(labels[LabelName], revision) {
		return Record{}, false
	}
	for _, value := range labels {
		// The API server accepts no longer values, so that no record has them.
		if len(value) > validation.LabelValueMaxLength {
			return Record{}, false
		}
	}
	r := Record{
		Namespace:       m.GetNamespace(),
		Secret:          m.GetName(),
		UID:             m.GetUID(),
		ResourceVersion: m.GetResourceVersion(),
		Changed:         changed(m),
		Release:         labels[LabelName],
		Revision:        revision,
		Status:          labels[LabelStatus],
		OwnerUID:        types.UID(labels[api.LabelOwnerUID]),
		Owner:           ownerFrom(m),
		Operator:        labels[api.LabelOperator],
		InputDigest:     labels[api.LabelInputDigest],
		ChartDigest:     labels[api.LabelChartDigest],
		ValuesDigest:    labels[api.LabelValuesDigest],
		Signature:       labels[api.LabelSignature],
		Marks:           marksFrom(labels),
		Integers:        labels[api.LabelNumbers] != api.NumbersHelm,
		NeverReady:      labels[api.LabelNeverReady] == "true",
		Approved:        api.Truncate(m.GetAnnotations()[AnnotationApproved], maxApproved),
	}
	if controller := metav1.GetControllerOfNoCopy(m); controller != nil {
		r.Controller = controller.UID
	}
	// An invalid value results in 0, which no revision has.
	r.writtenFor, _ = strconv.Atoi(labels[api.LabelRevision])
	// If the annotation is invalid, only the description is missing.
	readAnnotation(m, AnnotationRelease, &r.Description)
	for _, text := range []*string{&r.Chart, &r.ChartVersion, &r.AppVersion, &r.Description.Description, &r.KeptNumbers} {
		*text = api.Truncate(*text, maxText)
	}
	var tested *Tested
	if readAnnotation(m, AnnotationTested, &tested) && tested != nil {
		tested.Message = api.Truncate(tested.Message, maxText)
		r.Tested = tested
	}
	if lookups := m.GetAnnotations()[AnnotationLookups]; r.Status == api.StatusDeployed && len(lookups) <= maxAnnotation {
		r.Lookups = lookups
	}
	// An invalid inventory costs one reconciliation that applies all objects.
	readAnnotation(m, AnnotationInventory, &r.Inventory)
	r.Inventory.Kinds = slices.DeleteFunc(r.Inventory.Kinds, func(kind string) bool { return kind == "" })
	// The copy releases the memory of a longer list.
	r.Inventory.Kinds = slices.Clone(r.Inventory.Kinds[:min(len(r.Inventory.Kinds), maxKinds)])
	r.Inventory.Outside = slices.Clone(r.Inventory.Outside[:min(len(r.Inventory.Outside), MaxOutside)])
	return r, true
}

// MaxOutside limits the objects in Inventory.Outside.
const MaxOutside = 100

// Everyone with write access to Secrets can write these annotations, and the index stores
// their content in memory. Larger annotations and more kinds are ignored.
const (
	maxApproved   = 64
	maxAnnotation = 16 << 10
	maxKinds      = 100
	// maxText limits each text of Description, and the message of Tested.
	maxText = 1 << 10
	// maxOwner is the length of "<kind>.<group>/<namespace>/<name>" with the longest names
	// that the API server accepts.
	maxOwner = validation.DNS1035LabelMaxLength + 1 + validation.DNS1123SubdomainMaxLength + 1 +
		validation.DNS1123LabelMaxLength + 1 + validation.DNS1123SubdomainMaxLength
)

// ownerFrom returns the annotation that identifies the custom resource. A longer text
// counts as no annotation, because it identifies none: the record is then not Genuine, and
// no action relies on it. A truncated text could be equal to another owner.
func ownerFrom(m metav1.Object) string {
	if owner := m.GetAnnotations()[api.AnnotationOwner]; len(owner) <= maxOwner {
		return owner
	}
	return ""
}

// readAnnotation decodes an annotation. It reports whether the annotation exists and is
// valid.
func readAnnotation(m metav1.Object, key string, into any) bool {
	text := m.GetAnnotations()[key]
	return text != "" && len(text) <= maxAnnotation && json.Unmarshal([]byte(text), into) == nil
}
