package apply

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// Key tells one object from every other. It has no version, since an object
// is the same in all of them.
type Key struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// GroupKind returns the object's kind.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// String names the object for people: "Deployment default/web".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// identified is an object that names its kind.
type identified interface {
	metav1.Object
	GroupVersionKind() schema.GroupVersionKind
}

// KeyOf returns the key of an object.
func KeyOf(o identified) Key { return keyOf(o.GroupVersionKind().GroupKind(), o) }

func keyOf(gk schema.GroupKind, o metav1.Object) Key {
	return Key{Group: gk.Group, Kind: gk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Describe names an object for people: "Deployment default/web".
func Describe(o identified) string { return KeyOf(o).String() }

// State is what is known of a live object from its metadata alone.
type State struct {
	Key
	UID             types.UID
	ResourceVersion string
	// Generation grows with the object's spec, for kinds that have it; 0 for
	// the others.
	Generation int64
	// Owner is the UID in the owner label. Labels are copied by other
	// controllers, see Ours.
	Owner types.UID
	// Referred reports whether the object has an ownerReference to Owner.
	Referred bool
	// Managed tells that the object carries an entry of our field manager: it was
	// applied by us, and is no object that only copied our labels.
	Managed bool
	// Fingerprint changes when somebody changes, removes or takes over a field
	// that we set, and on nothing else. It holds no values.
	Fingerprint uint64
	// Applied is the hash of what was last sent.
	Applied string
	// Scaled tells that an autoscaler has taken spec.replicas, which is then
	// left to it; unscaled is the fingerprint as it would be had it not.
	Scaled   bool
	unscaled uint64
	// Kept tells that the object is to outlive its release.
	Kept bool
	// Ignored tells that a person has asked for its drift to be ignored.
	Ignored bool
	// Deleting tells that the object is on its way out.
	Deleting bool
}

// StateOf reads the state of an object of that kind.
func StateOf(gk schema.GroupKind, m metav1.Object) State {
	s := State{
		Key:             keyOf(gk, m),
		UID:             m.GetUID(),
		ResourceVersion: m.GetResourceVersion(),
		Generation:      m.GetGeneration(),
		Owner:           types.UID(m.GetLabels()[api.LabelOwnerUID]),
		Applied:         m.GetAnnotations()[api.AnnotationApplied],
		Kept:            HasKeepPolicy(m),
		Ignored:         m.GetAnnotations()[api.AnnotationDrift] == api.DriftIgnore,
		Deleting:        !m.GetDeletionTimestamp().IsZero(),
	}
	s.Referred = s.Owner != "" && HasOwnerReference(m, s.Owner)
	ours := ownEntry(m.GetManagedFields())
	if ours == nil {
		return s
	}
	s.Managed = true
	fields := ours.FieldsV1.GetRawBytes()
	s.Fingerprint = fingerprint(fields, s.Applied)
	if hasScaleEntry(m.GetManagedFields()) {
		if with, ok := withReplicas(fields); ok {
			s.Scaled, s.unscaled = true, fingerprint(with, s.Applied)
		}
	}
	return s
}

func fingerprint(fields []byte, applied string) uint64 {
	h := xxhash.New()
	// Writes to a hash never fail.
	_, _ = h.Write(fields)
	_, _ = h.WriteString(applied)
	return h.Sum64()
}

// Unscaled returns the state as it would be had no autoscaler taken
// spec.replicas. It is what to expect of an object whose manifest sets them:
// where the autoscaler goes and a person scales, the difference must show.
func (s State) Unscaled() State {
	if s.Scaled {
		s.Fingerprint = s.unscaled
	}
	return s
}

// Matches reports whether the object is as it was when it was last applied, but
// for what others own and an autoscaler does.
func (s State) Matches(expected State) bool {
	return s.Owner == expected.Owner && s.Managed &&
		(s.Fingerprint == expected.Fingerprint || s.Scaled && s.unscaled == expected.Fingerprint)
}

// ownEntry returns what our field manager has applied, nil where it has not.
func ownEntry(entries []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	for i := range entries {
		e := &entries[i]
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil {
			return e
		}
	}
	return nil
}

// controllerManager is the manager under which Kubernetes' own controllers write, the
// horizontal pod autoscaler among them; kubectl scale writes under kubectl's.
const controllerManager = "kube-controller-manager"

// hasScaleEntry reports whether an autoscaler holds replicas.
func hasScaleEntry(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == controllerManager && e.Subresource == "scale" && e.FieldsV1 != nil &&
			bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
	})
}

// replicas is the field that autoscalers set.
var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// withReplicas returns the field set as it would be had no autoscaler taken
// spec.replicas, and false where it was not taken.
func withReplicas(fields []byte) ([]byte, bool) {
	set, err := parseFields(fields)
	if err != nil || set.Has(replicas) {
		return nil, false
	}
	set.Insert(replicas)
	data, err := set.ToJSON()
	return data, err == nil
}

func parseFields(fields []byte) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(fields))
	return set, err
}

// CorrectedFields returns the fields that we held after an apply and not before it: what
// somebody had changed, removed or taken over. There are at most limit.
func CorrectedFields(before, after metav1.Object, limit int) []string {
	held := func(object metav1.Object) *fieldpath.Set {
		if entry := ownEntry(object.GetManagedFields()); entry != nil {
			if set, err := parseFields(entry.FieldsV1.GetRawBytes()); err == nil {
				return set
			}
		}
		return &fieldpath.Set{}
	}
	var lost []string
	// Not by All, which goes on where a loop over it was left, and panics.
	held(after).Difference(held(before)).Leaves().Iterate(func(path fieldpath.Path) {
		switch {
		case len(lost) < limit:
			lost = append(lost, strings.TrimPrefix(path.String(), "."))
		case len(lost) == limit:
			lost = append(lost, "…")
		}
	})
	return lost
}

// Digest covers what a set of objects is, in whatever order they stand. Two
// sets with equal digests were applied from the same and not damaged since.
func Digest(objects []State) string {
	var sum uint64
	for _, s := range objects {
		sum += xxhash.Sum64String(fmt.Sprintf("%s|%s|%s|%s|%x", s.Group, s.Kind, s.Namespace, s.Name, s.Fingerprint))
	}
	return fmt.Sprintf("%d-%016x", len(objects), sum)
}
