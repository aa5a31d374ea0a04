package crd

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
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

// validate asks the API server's own code whether it would take the schema.
func validate(schema *apiextensionsv1.JSONSchemaProps) error {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		return err
	}
	s, err := structural.NewStructural(&internal)
	if err != nil {
		return err
	}
	return structural.ValidateStructural(field.NewPath("openAPIV3Schema"), s).ToAggregate()
}

// holdsScale reports whether what is scaled can be stored. The API server takes
// a path to anywhere; it then drops what kubectl scale writes and says nothing.
func holdsScale(kind catalog.Kind, schema *apiextensionsv1.JSONSchemaProps) error {
	at := *schema
	for _, field := range kind.ScalePath() {
		next, ok := at.Properties[field]
		switch {
		case ok:
			at = next
		case at.XPreserveUnknownFields != nil && *at.XPreserveUnknownFields:
			return nil
		case at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil:
			at = *at.AdditionalProperties.Schema
		default:
			return fmt.Errorf("subresources.scale.specReplicasPath: the chart's values.schema.json knows no %s", kind.Subresources.Scale.SpecReplicasPath)
		}
	}
	return nil
}

// scaleTypes reports whether what kubectl scale reads of the status is of the type
// that it needs. The API server finds out when it is asked.
func scaleTypes(kind catalog.Kind) error {
	scale := kind.Subresources.Scale
	if scale == nil {
		return nil
	}
	for _, at := range []struct {
		key, path string
		want      kindstatus.Type
	}{
		{"statusReplicasPath", scale.StatusReplicasPath, kindstatus.TypeInteger},
		{"labelSelectorPath", ptr.Deref(scale.LabelSelectorPath, ""), kindstatus.TypeString},
	} {
		name, ok := strings.CutPrefix(at.path, ".status.")
		if shape, own := kind.Fields.Shape(name); ok && own && shape.Type != "" && shape.Type != at.want {
			return fmt.Errorf("subresources.scale.%s: the field %s is of the type %s, and has to be of the type %s", at.key, at.path, shape.Type, at.want)
		}
	}
	return nil
}

// Warning tells what of a chart's schema the API server does not check.
type Warning struct {
	// Path is the field of the custom resource, as spec.image.tag; items of
	// a list are "[*]" and entries of a map "*".
	Path string
	// Lost is the keyword, and what about it, that could not be expressed.
	Lost string
	// Checked: Helm checks it all the same, before it renders.
	// Such a fault is reported in the status and not by kubectl apply.
	Checked bool
}

// String formats the warning for people.
func (w Warning) String() string {
	if w.Checked {
		return fmt.Sprintf("%s: %s: not checked by the API server, but by Helm before it renders", w.Path, w.Lost)
	}
	return fmt.Sprintf("%s: %s: checked by nobody", w.Path, w.Lost)
}
