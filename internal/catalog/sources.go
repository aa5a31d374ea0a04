package catalog

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/watches"
)

// Source is one source of values.
type Source struct {
	watches.ValuesFrom
	// Object is the name of the object.
	Object *Template
	// expression is nil for a source with a key.
	expression *valuesfrom.Expression
	// ClusterScoped is true if the kind is known to be cluster-scoped.
	ClusterScoped bool
}

// SourcesFor returns the sources of a custom resource's values in addition to its spec, in
// their order. They are in the namespace of the custom resource or, if it is
// cluster-scoped, of its release: no field of the spec can select another namespace.
func (k Kind) SourcesFor(cr *unstructured.Unstructured, releaseNamespace string) ([]valuesfrom.Source, error) {
	from := make([]valuesfrom.Source, 0, len(k.Sources))
	for i, source := range k.Sources {
		name, err := source.Object.For(cr.Object)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		found := valuesfrom.Source{
			At:  fmt.Sprintf("valuesFrom[%d]", i),
			Ref: valuesfrom.Ref{Kind: source.GVK(), Namespace: cmp.Or(cr.GetNamespace(), releaseNamespace), Name: name},
			Key: source.DataKey(), Expression: source.expression, TargetPath: source.TargetPath, Optional: source.Optional,
		}
		if source.ClusterScoped {
			found.Namespace = ""
		}
		from = append(from, found)
	}
	return from, nil
}

// parseSources parses the names of valuesFrom, compiles the expressions, and checks the
// target paths. The entries are those of the file.
func parseSources(from []watches.ValuesFrom, entries []watches.Watch) ([]Source, error) {
	var list []Source
	for i, entry := range from {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		source := Source{ValuesFrom: entry, ClusterScoped: clusterScoped(entry.GVK().GroupKind(), entries)}
		var err error
		if source.Object, err = parseTemplate(at+".name", entry.Name, optional(validation.IsDNS1123Subdomain)); err != nil {
			return nil, err
		}
		if entry.Expression != "" {
			if source.expression, err = valuesfrom.Compile(entry.Expression, entry.TargetPath == ""); err != nil {
				return nil, fmt.Errorf("%s.expression: %w", at, err)
			}
		}
		if entry.TargetPath != "" {
			if err := chart.CheckPath(entry.TargetPath); err != nil {
				return nil, fmt.Errorf("%s.targetPath: %w", at, err)
			}
		}
		list = append(list, source)
	}
	return list, nil
}
