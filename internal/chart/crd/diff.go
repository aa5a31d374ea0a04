package crd

import (
	"cmp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/chart/compat"
)

// State is what has become of a definition.
type State string

// States.
const (
	Unchanged State = "unchanged"
	Changed   State = "changed"
	// New: there was no definition of the kind.
	New State = "new"
	// Gone: no kind makes the definition, so that nobody serves its resources.
	Gone State = "gone"
)

// Difference is what has become of one definition.
type Difference struct {
	// Name is that of the CRD, <plural>.<group>; of the old one if it has
	// another.
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// Changes are those of a definition that has changed, breaking ones first.
	Changes []compat.Change `json:"changes,omitempty"`
}

// Breaking counts what breaks custom resources that there are.
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

// Diff compares definitions that there were with those that are made now, by
// their kinds and in the order of their names.
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

// counterpart returns the definition of the same kind, nil if there is none.
func counterpart(among []*apiextensionsv1.CustomResourceDefinition, as *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	for _, one := range among {
		if one.Spec.Group == as.Spec.Group && one.Spec.Names.Kind == as.Spec.Names.Kind {
			return one
		}
	}
	return nil
}
