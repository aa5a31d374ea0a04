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
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// Key identifies an object. It has no version, because an object is the same in all versions.
type Key struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// GroupKind returns the group and kind of the object.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// String returns the object as text, for example "Deployment default/web".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// identified is an object with a kind.
type identified interface {
	metav1.Object
	GroupVersionKind() schema.GroupVersionKind
}

// KeyOf returns the key of an object.
func KeyOf(o identified) Key { return keyOf(o.GroupVersionKind().GroupKind(), o) }

func keyOf(gk schema.GroupKind, o metav1.Object) Key {
	return Key{Group: gk.Group, Kind: gk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Describe returns an object as text, for example "Deployment default/web".
func Describe(o identified) string { return KeyOf(o).String() }

// State is the part of a live object that is read from its metadata.
type State struct {
	Key
	UID             types.UID
	ResourceVersion string
	// Generation increases with each change of the spec. It is 0 for kinds without a
	// generation.
	Generation int64
	// Owner is the UID in the owner label. Other controllers may copy labels, see
	// Managed.
	Owner types.UID
	// Referred is true if the object has an ownerReference to Owner.
	Referred bool
	// Managed is true if the object has an entry of the operator's field manager: the
	// operator applied it, and its labels were not only copied.
	Managed bool
	// Fingerprint changes if and only if another client changes, removes or takes over
	// a field that the operator has applied. It contains no values.
	Fingerprint uint64
	// Applied is the digest of the object that was applied last. It is empty if the
	// annotation is no digest: everyone with write access to the object can write any text
	// there, and states are kept in memory. An empty digest differs from every digest, so
	// that the object is applied again.
	Applied string
	// Scaled is true if an autoscaler owns spec.replicas, which is then no drift;
	// unscaled is the fingerprint as if the operator still owned spec.replicas.
	Scaled   bool
	unscaled uint64
	// Unscalable is true in an expected state if replicas that an autoscaler sets are drift.
	Unscalable bool
	// Kept is true if the object has the policy "keep".
	Kept bool
	// Protected is true if an annotation protects the object from deletion.
	Protected bool
	// Ignored is true if an annotation says that drift of the object is ignored.
	Ignored bool
	// Deleting is true if the object is being deleted.
	Deleting bool
}

// StateOf returns the state of an object of the given kind.
func StateOf(gk schema.GroupKind, m metav1.Object) State {
	s := State{
		Key:             keyOf(gk, m),
		UID:             m.GetUID(),
		ResourceVersion: m.GetResourceVersion(),
		Generation:      m.GetGeneration(),
		Owner:           types.UID(m.GetLabels()[api.LabelOwnerUID]),
		Kept:            HasKeepPolicy(m),
		Protected:       IsProtected(m),
		Ignored:         m.GetAnnotations()[api.AnnotationDrift] == api.DriftIgnore,
		Deleting:        !m.GetDeletionTimestamp().IsZero(),
	}
	if len(s.Owner) > validation.LabelValueMaxLength {
		// The API server accepts no longer value. No owner has such a UID.
		s.Owner = ""
	}
	applied := m.GetAnnotations()[api.AnnotationApplied]
	if len(applied) == digestLength {
		s.Applied = applied
	}
	s.Referred = s.Owner != "" && HasOwnerReference(m, s.Owner)
	own := ownEntry(m.GetManagedFields())
	if own == nil {
		return s
	}
	s.Managed = true
	fields := own.FieldsV1.GetRawBytes()
	// The fingerprint covers the whole annotation, so that any change of it is drift.
	s.Fingerprint = fingerprint(fields, applied)
	if hasScaleEntry(m.GetManagedFields()) {
		if with, ok := withReplicas(fields); ok {
			s.Scaled, s.unscaled = true, fingerprint(with, applied)
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

// Unscaled returns the state as if no autoscaler owned spec.replicas. It is the state to
// expect of an object whose manifest sets spec.replicas: if a user scales the object after
// the autoscaler was removed, that is drift.
func (s State) Unscaled() State {
	if s.Scaled {
		s.Fingerprint = s.unscaled
	}
	return s
}

// Matches reports whether the object is as it was applied, apart from fields of other
// managers and from replicas that an autoscaler has set.
func (s State) Matches(expected State) bool {
	return s.Owner == expected.Owner && s.Managed &&
		(s.Fingerprint == expected.Fingerprint || s.Scaled && s.unscaled == expected.Fingerprint && !expected.Unscalable)
}

// ownEntry returns the Apply entry of the operator's field manager, or nil.
func ownEntry(entries []metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	for i := range entries {
		e := &entries[i]
		if e.Manager == api.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil {
			return e
		}
	}
	return nil
}

// controllerManager is the field manager of Kubernetes' own controllers, including the
// HorizontalPodAutoscaler. "kubectl scale" has another one.
const controllerManager = "kube-controller-manager"

// hasScaleEntry reports whether an autoscaler owns spec.replicas.
func hasScaleEntry(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == controllerManager && e.Subresource == "scale" && e.FieldsV1 != nil &&
			bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
	})
}

// replicas is the field that autoscalers set.
var replicas = fieldpath.MakePathOrDie("spec", "replicas")

// withReplicas returns a set of fields with spec.replicas added, and false if the set already
// contains it.
func withReplicas(fields []byte) ([]byte, bool) {
	set, err := parseFields(fields)
	if err != nil || set.Has(replicas) {
		return nil, false
	}
	set.Insert(replicas)
	data, err := set.ToJSON()
	return data, err == nil
}

// SetsReplicas reports whether the operator's field manager owns spec.replicas of a live object.
// An entry that cannot be read counts as owning it.
func SetsReplicas(live metav1.Object) bool {
	own := ownEntry(live.GetManagedFields())
	if own == nil {
		return false
	}
	set, err := parseFields(own.FieldsV1.GetRawBytes())
	return err != nil || set.Has(replicas)
}

func parseFields(fields []byte) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(fields))
	return set, err
}

// CorrectedFields returns the fields that the operator owned after an apply and not before it,
// because another client had changed, removed or taken them over. It returns at most limit
// fields, and "…" if there are more. The pointers are those of the fields, see Options.Ignored.
func CorrectedFields(before, after metav1.Object, limit int) (fields, pointers []string) {
	held := func(object metav1.Object) *fieldpath.Set {
		if entry := ownEntry(object.GetManagedFields()); entry != nil {
			if set, err := parseFields(entry.FieldsV1.GetRawBytes()); err == nil {
				return set
			}
		}
		return &fieldpath.Set{}
	}
	// All cannot be used: it panics if the loop ends early.
	held(after).Difference(held(before)).Leaves().Iterate(func(path fieldpath.Path) {
		switch {
		case len(fields) < limit:
			fields = append(fields, strings.TrimPrefix(path.String(), "."))
			if pointer := pointerOf(path); pointer != "" {
				pointers = append(pointers, pointer)
			}
		case len(fields) == limit:
			fields = append(fields, "…")
		}
	})
	return fields, pointers
}

// pointerOf returns the JSON pointer of a field, in the form of Options.Ignored. It is empty for a
// list item without keys.
func pointerOf(path fieldpath.Path) string {
	var text strings.Builder
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(*element.FieldName))
		case element.Key != nil && len(*element.Key) > 0:
			key := (*element.Key)[0]
			fmt.Fprintf(&text, "/%s=%v", key.Name, key.Value.Unstructured())
		default:
			return ""
		}
	}
	return text.String()
}

// Digest returns a digest of the states in any order. If two sets have the same digest, the
// same objects were applied, and none has drifted since.
func Digest(objects []State) string {
	var sum uint64
	for _, s := range objects {
		sum += xxhash.Sum64String(fmt.Sprintf("%s|%s|%s|%s|%x", s.Group, s.Kind, s.Namespace, s.Name, s.Fingerprint))
	}
	return fmt.Sprintf("%d-%016x", len(objects), sum)
}
