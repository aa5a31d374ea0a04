package crd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// Generate returns the definition of a kind, and what of its chart's schema
// the API server will not check.
func Generate(kind catalog.Kind) (*apiextensionsv1.CustomResourceDefinition, []Warning, error) {
	spec, warnings, err := specSchema(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	schema := rootSchema(kind, spec)
	if err := validate(schema); err != nil {
		return nil, nil, fmt.Errorf("%s: the schema that was made of the chart's values is none for the API server: %w", kind.Kind, err)
	}
	if err := errors.Join(holdsScale(kind, schema), scaleTypes(kind)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	return definition(kind, schema), warnings, nil
}

// specSchema converts the chart's schema or, where it has none, infers one.
func specSchema(kind catalog.Kind) (apiextensionsv1.JSONSchemaProps, []Warning, error) {
	defaults, err := kind.Chart.Values()
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, nil, fmt.Errorf("the chart's default values: %w", err)
	}
	schema := kind.Chart.Schema()
	if len(schema) == 0 {
		return inferSpec(defaults, readTexts(kind.Chart.ValuesFile()), keptKeys(kind)), nil, nil
	}
	spec, warnings, err := convertSpec(schema, defaults, keptKeys(kind))
	if err != nil {
		return spec, nil, fmt.Errorf("values.schema.json: %w", err)
	}
	return spec, warnings, nil
}

func definition(kind catalog.Kind, schema *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	names := namesOf(kind.Watch)
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{
			APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind:       "CustomResourceDefinition",
		},
		ObjectMeta: metav1.ObjectMeta{Name: Name(kind)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    kind.Group,
			Scope:    scope(kind),
			Names:    names,
			Versions: versions(kind, schema),
		},
	}
}

// scope is the kind's, by the words that a watches entry and a CRD share.
func scope(kind catalog.Kind) apiextensionsv1.ResourceScope {
	return apiextensionsv1.ResourceScope(cmp.Or(kind.Scope, watches.ScopeNamespaced))
}

// rootSchema puts spec and status into the schema of a whole custom resource.
func rootSchema(kind catalog.Kind, spec apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	root := object("", props{
		"apiVersion": text("Group and version of this representation of the object."),
		"kind":       text("Kind of the object."),
		"metadata":   {Type: "object"},
		"spec":       spec,
		"status":     status(kind),
	})
	// An empty spec is one without what has no default.
	if len(spec.Required) > 0 {
		root.Required = []string{"spec"}
	}
	root.Description = fmt.Sprintf("%s is a release of the Helm chart %s.", kind.Kind, kind.Chart.Name())
	if about := strings.TrimSpace(kind.Chart.Description()); about != "" {
		root.Description = fmt.Sprintf("%s is a release of the Helm chart %s: %s", kind.Kind, kind.Chart.Name(), sentence(about))
	}
	return &root
}

// keptKeys returns the keys of the values that mean something to Helm whatever
// the chart's schema says, with their descriptions.
func keptKeys(kind catalog.Kind) map[string]string {
	keys := map[string]string{"global": "Values that the chart shares with its subcharts."}
	for _, name := range kind.Chart.Subcharts() {
		keys[name] = fmt.Sprintf("Values of the subchart %s.", name)
	}
	if kind.Chart.HasTags() {
		keys["tags"] = "Groups of subcharts, by tag, to turn on or off."
	}
	return keys
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if strings.ContainsAny(cmp.Or(text[max(len(text)-1, 0):], "."), ".!?:") {
		return text
	}
	return text + "."
}
