package crd

import (
	"cmp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart/compat"
)

// State is the result of comparing the old and the new CRD of a kind.
type State string

// States.
const (
	Unchanged State = "unchanged"
	Changed   State = "changed"
	// New: the kind had no CRD.
	New State = "new"
	// Gone: no entry of the watches file serves the kind of the CRD.
	Gone State = "gone"
)

// Difference is the difference between the old and the new CRD of a kind.
type Difference struct {
	// Name is the name of the CRD, <plural>.<group>. If the name has changed, it is
	// the old name.
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// Changes are the changes of the CRD, breaking changes first.
	Changes []compat.Change `json:"changes,omitempty"`
}

// Breaking returns the number of changes that break existing custom resources.
func (d Difference) Breaking() int {
	if d.State == Gone {
		return 1
	}
	count := 0
	for _, change := range d.Changes {
		if change.Breaking {
			count++
		}
	}
	return count
}

// Diff compares the old and the new CRD of each kind. The result is sorted by name.
func Diff(before, now []*apiextensionsv1.CustomResourceDefinition) []Difference {
	differences := make([]Difference, 0, len(now))
	for _, is := range now {
		d := Difference{Name: is.Name, Kind: is.Spec.Names.Kind, State: New}
		if was := counterpart(before, is); was != nil {
			d.Name, d.State = was.Name, Unchanged
			if d.Changes = compat.Compare(was, is); len(d.Changes) > 0 {
				d.State = Changed
			}
		}
		differences = append(differences, d)
	}
	for _, was := range before {
		if counterpart(now, was) == nil {
			differences = append(differences, Difference{Name: was.Name, Kind: was.Spec.Names.Kind, State: Gone})
		}
	}
	slices.SortStableFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return differences
}

// counterpart returns the CRD of the same kind, or nil.
func counterpart(among []*apiextensionsv1.CustomResourceDefinition, as *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	for _, one := range among {
		if one.Spec.Group == as.Spec.Group && one.Spec.Names.Kind == as.Spec.Names.Kind {
			return one
		}
	}
	return nil
}
