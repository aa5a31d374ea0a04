package helm

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// An object outside of the release's namespace counts for the release only if the
// release names it, see package inventory. So that a new process need not decode
// the record of each release, the record lists these objects in an annotation. The
// annotation needs no signature: it only names which of the objects with our labels
// count, and those labels take permission to write the object itself.

// maxOutsideText bounds the list in bytes.
const maxOutsideText = 8 << 10

// outside returns the objects that are not in the namespace of the release, as a
// record lists them; none if there are too many.
func outside(states []apply.State, namespace string) []string {
	var names []string
	size := 0
	for i := range states {
		if key := states[i].Key; key.Namespace != namespace {
			name := key.GroupKind().String() + "/" + key.Namespace + "/" + key.Name
			size += len(name)
			names = append(names, name)
		}
	}
	if len(names) > release.MaxOutside || size > maxOutsideText {
		return nil
	}
	slices.Sort(names)
	return names
}

// OutsideObjects returns the keys of the objects that a record lists.
func OutsideObjects(stored release.Inventory) []apply.Key {
	var keys []apply.Key
	for _, text := range stored.Outside {
		kind, place, _ := strings.Cut(text, "/")
		namespace, name, _ := strings.Cut(place, "/")
		if gk := schema.ParseGroupKind(kind); gk.Kind != "" && name != "" {
			keys = append(keys, apply.Key{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name})
		}
	}
	return keys
}
