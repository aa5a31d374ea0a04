package catalog

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/watches"
)

// Source is one object that values come from.
type Source struct {
	watches.ValuesFrom
	// Object is its name for a custom resource.
	Object *Name
}

// SourcesFor returns the objects that a custom resource's values come from
// beside its spec, in their order. They are in its namespace or, if it has
// none, in that of its release: nothing in a spec can name another.
func (k Kind) SourcesFor(cr *unstructured.Unstructured, releaseNamespace string) ([]valuesfrom.Source, error) {
	from := make([]valuesfrom.Source, len(k.Sources))
	for i, source := range k.Sources {
		name, err := source.Object.Of(cr.Object)
		if err != nil {
			return nil, err
		}
		from[i] = valuesfrom.Source{
			Ref: valuesfrom.Ref{Kind: source.Kind, Namespace: cmp.Or(cr.GetNamespace(), releaseNamespace), Name: name},
			Key: source.DataKey(), TargetPath: source.TargetPath, Optional: source.Optional,
		}
	}
	return from, nil
}

// parseSources parses the names of valuesFrom and tries its paths.
func parseSources(from []watches.ValuesFrom) ([]Source, error) {
	var list []Source
	for i, entry := range from {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		name, err := parseObjectName(at+".name", entry.Name)
		if err != nil {
			return nil, err
		}
		if entry.TargetPath != "" {
			if err := chart.CheckPath(entry.TargetPath); err != nil {
				return nil, fmt.Errorf("%s.targetPath: %w", at, err)
			}
		}
		list = append(list, Source{ValuesFrom: entry, Object: name})
	}
	return list, nil
}
