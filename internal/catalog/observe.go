package catalog

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/inputs/observed"
	"github.com/chartwright/chartwright/internal/watches"
)

// Selection is what one custom resource sees of an entry of observe.
type Selection = observed.Selection

// Observe is one entry of observe.
type Observe struct {
	Name  string
	Watch observed.Watch
	// labels are those that differ from one custom resource to another.
	labels map[string]*Name
}

// observe parses the labels of each entry.
func observe(entries []watches.Observe) ([]Observe, error) {
	var list []Observe
	for i, entry := range entries {
		o := Observe{Name: entry.Name, labels: map[string]*Name{}}
		fixed := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(entry.Selector.MatchLabels)) {
			value := entry.Selector.MatchLabels[key]
			if !watches.Templated(value) {
				fixed[key] = value
				continue
			}
			var err error
			at := fmt.Sprintf("observe[%d].selector.matchLabels: %s", i, key)
			if o.labels[key], err = parse(at, value, validation.IsValidLabelValue); err != nil {
				return nil, err
			}
		}
		o.Watch = observed.NewWatch(entry.GVK(), fixed, slices.Collect(maps.Keys(o.labels)))
		list = append(list, o)
	}
	return list, nil
}

// Selection returns what a custom resource sees of the entry. It is an error if
// the resource lacks what a label's template asks for, or the result is no
// label's value.
func (o Observe) Selection(cr map[string]any, release types.NamespacedName) (Selection, error) {
	data := maps.Clone(cr)
	data["release"] = map[string]any{"name": release.Name, "namespace": release.Namespace}
	values := make(map[string]string, len(o.labels))
	for key, label := range o.labels {
		value, err := label.Of(data)
		if err != nil {
			return Selection{}, err
		}
		values[key] = value
	}
	return Selection{Watch: o.Watch, Name: o.Name, Namespace: release.Namespace, Labels: values}, nil
}
