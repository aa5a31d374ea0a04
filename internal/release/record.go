package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// OwnerDamaged takes its place on records that could not be read and were
	// set aside.
	OwnerDamaged = "chartwright-damaged"
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
	// NoHooks: the revision has no hooks. Older records do not say so.
	NoHooks bool `json:"noHooks,omitempty"`
}

// setChart describes the chart of a release.
func (d *Description) setChart(rls *helmrelease.Release) {
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		m := rls.Chart.Metadata
		d.Chart, d.ChartVersion, d.AppVersion = m.Name, m.Version, m.AppVersion
	}
}

// AnnotationLookups holds what the templates have read by lookup, see package
// helm.
const AnnotationLookups = api.Domain + "/lookups"

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

// Inventory is what a deployed revision's objects were when its action ended,
// so that another process knows what to watch and what to expect.
type Inventory struct {
	// Digest is that of package apply.
	Digest string `json:"digest,omitempty"`
	// Kinds are "<group>/<version>/<kind>", without "<group>/" in the core
	// group.
	Kinds []string `json:"kinds,omitempty"`
	// References is the number of objects with an ownerReference to the custom
	// resource. Nil means that it is unknown.
	References *int `json:"references,omitempty"`
	// Finished holds the Jobs with ttlSecondsAfterFinished that have finished, by
	// "<namespace>/<name>", and how: Complete or Failed. Digest does not cover them.
	Finished map[string]string `json:"finished,omitempty"`
	// Outside lists the objects that are not in the namespace of the release, as
	// "<kind>.<group>/<namespace>/<name>". It is empty if there are too many, and on
	// records of older versions.
	Outside []string `json:"outside,omitempty"`
}

// GVKs returns the kinds. Those that somebody broke are left out.
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

// KindNames returns kinds as Inventory.Kinds holds them.
func KindNames(gvks []schema.GroupVersionKind) []string {
	names := make([]string, len(gvks))
	for i, gvk := range gvks {
		names[i] = gvk.GroupVersion().String() + "/" + gvk.Kind
	}
	return names
}

// Record is what is known of one stored revision.
type Record struct {
	Namespace string
	// Secret is the name of the Secret that holds the revision.
	Secret          string
	UID             types.UID
	ResourceVersion string
	// Changed is when the record was last written, in whole seconds.
	Changed time.Time

	Release  string
	Revision int
	Status   string

	// OwnerUID is the UID of the custom resource that the release belongs to;
	// empty on records that no Chartwright operator began.
	OwnerUID types.UID
	// Controller is the UID of what controls the Secret by an ownerReference. Ours
	// have none: the operator-sdk gives one to the custom resource.
	Controller types.UID
	// Owner names that custom resource: "<kind>.<group>/<namespace>/<name>".
	Owner    string
	Operator string
	Action   string

	InputDigest  string
	ChartDigest  string
	ValuesDigest string
	// Signature is that of the record's content. Only an action that reads the
	// content verifies it.
	Signature string

	Description
	Inventory Inventory
	// Lookups is the annotation of that name, on a deployed revision alone.
	Lookups string
	// Marks count on the newest revision that was Written; see MarksOf.
	Marks Marks
	// NeverReady: another revision took its place before its objects were
	// ready.
	NeverReady bool
	// Tested tells how the chart's tests went on this revision, nil where they
	// were not run.
	Tested *Tested

	// writtenFor is the revision in our own label.
	writtenFor int
}

// Genuine reports whether a Chartwright operator wrote the revision, and was the
// last to write it. The helm CLI copies our labels to the revisions that it
// makes, whose digests are void; and of those that it changes, as when it
// uninstalls, it drops the annotations.
func (r Record) Genuine() bool { return r.Written() && r.Owner != "" }

// Stripped reports whether the record has lost its annotations: somebody else
// was the last to write a revision of ours. "helm test" does so and changes
// nothing else that counts; whether that is so, the record's content shows.
func (r Record) Stripped() bool { return r.Written() && r.Owner == "" }

// carry returns the record with what the annotations of its last state said,
// until they are restored.
func (r Record) carry(before Record) Record {
	r.Description, r.Inventory, r.Lookups, r.Tested = before.Description, before.Inventory, before.Lookups, before.Tested
	return r
}

// Written reports whether a Chartwright operator made the revision, whoever wrote
// its record last: labels outlive that.
func (r Record) Written() bool {
	return r.OwnerUID != "" && r.Revision > 0 && r.writtenFor == r.Revision
}

// WasDeployed reports whether the revision is deployed or once was.
func (r Record) WasDeployed() bool {
	return r.Status == api.StatusDeployed || r.Status == api.StatusSuperseded
}

// WasGood reports whether the revision was deployed and, as far as is known,
// ready: one to go back to without being named.
func (r Record) WasGood() bool { return r.WasDeployed() && !r.NeverReady }

// changed reads when Helm, or we, last wrote a record.
func changed(m metav1.Object) time.Time {
	at := m.GetCreationTimestamp().Time
	for _, label := range []string{labelCreated, labelModified} {
		if seconds, err := strconv.ParseInt(m.GetLabels()[label], 10, 64); err == nil && time.Unix(seconds, 0).After(at) {
			at = time.Unix(seconds, 0)
		}
	}
	return at
}

// Labels in which Helm notes, in Unix seconds, when it wrote a record.
const (
	labelCreated  = "createdAt"
	labelModified = "modifiedAt"
)

// SecretName returns the name of the Secret in which Helm stores a revision.
func SecretName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// FromMeta reads a record from the metadata of its Secret. It returns false if
// the Secret is not a release record: its labels and its name must agree on the
// release and the revision, because a copy of a record keeps the labels.
func FromMeta(m metav1.Object) (Record, bool) {
	labels := m.GetLabels()
	revision, err := strconv.Atoi(labels[LabelVersion])
	if err != nil || labels[LabelOwner] != OwnerHelm || labels[LabelName] == "" || m.GetName() != SecretName(labels[LabelName], revision) {
		return Record{}, false
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
		Owner:           m.GetAnnotations()[api.AnnotationOwner],
		Operator:        labels[api.LabelOperator],
		Action:          labels[api.LabelAction],
		InputDigest:     labels[api.LabelInputDigest],
		ChartDigest:     labels[api.LabelChartDigest],
		ValuesDigest:    labels[api.LabelValuesDigest],
		Signature:       labels[api.LabelSignature],
		Marks:           marksFrom(labels),
		NeverReady:      labels[api.LabelNeverReady] == "true",
	}
	if controller := metav1.GetControllerOfNoCopy(m); controller != nil {
		r.Controller = controller.UID
	}
	// A value that is no number leaves 0, which no revision has.
	r.writtenFor, _ = strconv.Atoi(labels[api.LabelRevision])
	// An annotation that somebody broke costs the description alone.
	readAnnotation(m, AnnotationRelease, &r.Description)
	var tested *Tested
	if readAnnotation(m, AnnotationTested, &tested) {
		r.Tested = tested
	}
	if lookups := m.GetAnnotations()[AnnotationLookups]; r.Status == api.StatusDeployed && len(lookups) <= maxAnnotation {
		r.Lookups = lookups
	}
	// And one more reconcile that applies every object.
	readAnnotation(m, AnnotationInventory, &r.Inventory)
	r.Inventory.Kinds = slices.DeleteFunc(r.Inventory.Kinds, func(kind string) bool { return kind == "" })
	// The copy drops the room that a longer list has taken.
	r.Inventory.Kinds = slices.Clone(r.Inventory.Kinds[:min(len(r.Inventory.Kinds), maxKinds)])
	r.Inventory.Outside = slices.Clone(r.Inventory.Outside[:min(len(r.Inventory.Outside), MaxOutside)])
	return r, true
}

// MaxOutside is the number of objects outside of the release's namespace that a
// record lists.
const MaxOutside = 100

// Everybody who may write Secrets can write these annotations, and the index
// holds what they say. Larger ones are not read, and no more kinds are.
const (
	maxAnnotation = 16 << 10
	maxKinds      = 100
)

// readAnnotation decodes an annotation. It reports whether there is one that can
// be decoded.
func readAnnotation(m metav1.Object, key string, into any) bool {
	text := m.GetAnnotations()[key]
	return text != "" && len(text) <= maxAnnotation && json.Unmarshal([]byte(text), into) == nil
}
