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
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/landing"
)

// Generate returns the CRD of a kind, and warnings for the parts of the chart's schema
// that the API server does not check.
func Generate(kind catalog.Kind) (*apiextensionsv1.CustomResourceDefinition, []Warning, error) {
	return GenerateWith(kind, nil)
}

// GenerateWith is Generate with a Finder that keeps the landings of charts without a schema.
func GenerateWith(kind catalog.Kind, finder *landing.Finder) (*apiextensionsv1.CustomResourceDefinition, []Warning, error) {
	spec, warnings, err := specSchema(kind, finder)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	warnings = append(warnings, fit(&spec, maxCRD/max(1, len(kind.Versions)))...)
	schema := rootSchema(kind, spec)
	if err := validate(schema); err != nil {
		return nil, nil, fmt.Errorf("%s: the API server rejects the schema derived from the chart: %w", kind.Kind, err)
	}
	if err := errors.Join(holdsScale(kind, schema), scaleTypes(kind)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", kind.Kind, err)
	}
	return crdOf(kind, schema), warnings, nil
}

// specSchema converts the chart's schema, or infers one if the chart has none.
func specSchema(kind catalog.Kind, finder *landing.Finder) (apiextensionsv1.JSONSchemaProps, []Warning, error) {
	defaults, err := kind.Chart.Values()
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, nil, fmt.Errorf("compute the chart's default values: %w", err)
	}
	schema := kind.Chart.Schema()
	if len(schema) == 0 {
		spec, err := inferChart(kind.Chart, defaults, finder, false)
		return spec, nil, err
	}
	spec, warnings, err := convertSpec(schema, defaults, keptKeys(kind.Chart))
	if err != nil {
		return spec, nil, fmt.Errorf("values.schema.json: %w", err)
	}
	return spec, warnings, nil
}

// inferChart returns the schema of spec for a chart without values.schema.json; see inferSpec.
func inferChart(c *chart.Chart, defaults map[string]any, finder *landing.Finder, typed bool) (apiextensionsv1.JSONSchemaProps, error) {
	landings, err := finder.Find(c)
	if err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("find the fields in which the chart's default values land: %w", err)
	}
	return inferSpec(defaults, readTexts(c.ValuesFile()), keptKeys(c), landings, typed), nil
}

// rootSchema returns the schema of a whole custom resource.
func rootSchema(kind catalog.Kind, spec apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	root := object("", props{
		"apiVersion": text("Group and version of this representation of the object."),
		"kind":       text("Kind of the object."),
		"metadata":   {Type: "object"},
		"spec":       spec,
		"status":     status(kind),
	})
	// A missing spec lacks the required fields without defaults.
	if len(spec.Required) > 0 {
		root.Required = []string{"spec"}
	}
	root.Description = fmt.Sprintf("%s is a release of the Helm chart %s.", kind.Kind, kind.Chart.Name())
	if about := strings.TrimSpace(kind.Chart.Description()); about != "" {
		root.Description = fmt.Sprintf("%s is a release of the Helm chart %s: %s", kind.Kind, kind.Chart.Name(), sentence(about))
	}
	return &root
}

// keptKeys returns the keys of the values that Helm uses even if the chart's schema
// does not declare them, with their descriptions.
func keptKeys(c *chart.Chart) map[string]string {
	keys := map[string]string{"global": "Values that the chart shares with its subcharts."}
	for _, name := range c.Subcharts() {
		keys[name] = fmt.Sprintf("Values of the subchart %s.", name)
	}
	if c.HasTags() {
		keys["tags"] = "Tags that enable or disable groups of subcharts."
	}
	return keys
}

// sentence appends a full stop unless the text ends in punctuation.
func sentence(text string) string {
	if strings.ContainsAny(cmp.Or(text[max(len(text)-1, 0):], "."), ".!?:") {
		return text
	}
	return text + "."
}

// validate validates a schema by the API server's own code.
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

// holdsScale returns an error if the field that kubectl scale sets does not exist. The
// API server accepts any path, and then silently drops the value.
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
			return fmt.Errorf("subresources.scale.specReplicasPath: values.schema.json of the chart does not declare %s", kind.Subresources.Scale.SpecReplicasPath)
		}
	}
	return nil
}

// scaleTypes returns an error if a status field that kubectl scale reads has the wrong
// type. The API server would report this only when a client reads the scale.
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
			return fmt.Errorf("subresources.scale.%s: field %s has type %s, want %s", at.key, at.path, shape.Type, at.want)
		}
	}
	return nil
}

// Warning describes a keyword of a chart's schema that the API server does not check.
type Warning struct {
	// Path is the path of the field, such as spec.image.tag. Items of a list are
	// "[*]" and entries of a map "*".
	Path string
	// Lost is the keyword, or its part, that a CRD cannot express.
	Lost string
	// Checked is true if Helm checks the keyword before it renders the chart. The
	// status, not kubectl apply, then reports a violation.
	Checked bool
}

// String formats the warning for users.
func (w Warning) String() string {
	if w.Checked {
		return fmt.Sprintf("%s: %s: not checked by the API server, only by Helm before it renders the chart", w.Path, w.Lost)
	}
	return fmt.Sprintf("%s: %s: checked neither by the API server nor by Helm", w.Path, w.Lost)
}
