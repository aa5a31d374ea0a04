package crd

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

// props is short for the properties of a schema.
type props = map[string]apiextensionsv1.JSONSchemaProps

// status returns the schema of api.Status with the kind's own fields. The schema
// preserves unknown fields, because another operator may have written the status.
func status(kind catalog.Kind) apiextensionsv1.JSONSchemaProps {
	fields := described(reflect.TypeFor[api.Status]())
	fields["conditions"], fields["outputs"] = conditions(), outputs(kind)
	s := object("Observed state of the release. The operator computes it from the cluster and never reads it back, so clearing it has no effect.", fields)
	if !kind.Outputs.Exist() {
		delete(s.Properties, "outputs")
		delete(s.Properties, "outputsSecret")
	}
	addFields(kind, &s)
	s.XPreserveUnknownFields = new(true)
	return s
}

// described returns the schemas of the fields of a struct in the status. The tags about and
// item of a field are the descriptions of the field and of the items of a list.
func described(of reflect.Type) props {
	fields := props{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		about := field.Tag.Get("about")
		switch t := field.Type; {
		case t == reflect.TypeFor[*metav1.Time]():
			fields[name] = date(about)
		case t.Kind() == reflect.Pointer:
			fields[name] = object(about, described(t.Elem()))
		case t.Kind() == reflect.Slice:
			fields[name] = list(about, object(field.Tag.Get("item"), described(t.Elem())))
		case t.Kind() == reflect.Int64:
			fields[name] = integer(about)
		case t.Kind() == reflect.String:
			fields[name] = text(about)
		}
	}
	return fields
}

// conditions requires only type and status: the operator-sdk sometimes omits the
// other fields, and a status that it wrote must remain valid.
func conditions() apiextensionsv1.JSONSchemaProps {
	holds, generation := text("Status of the condition."), integer("Generation of the spec that the condition refers to.")
	holds.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)}, {Raw: []byte(`"Unknown"`)}}
	generation.Minimum = new(0.0)
	condition := object("Condition of the custom resource.", props{
		"type":               limited("Type of the condition, in CamelCase.", 316),
		"status":             holds,
		"observedGeneration": generation,
		"reason":             limited("Reason for the status, as one CamelCase word.", 1024),
		"message":            limited("Human-readable explanation of the status.", 32768),
		"lastTransitionTime": date("Time at which the status last changed."),
	})
	condition.Required = []string{"type", "status"}
	s := list("Conditions of the custom resource. Ready and Deployed are always present, others such as Reconciling and Stalled only while they are True.", condition)
	s.XListType = new("map")
	s.XListMapKeys = []string{"type"}
	return s
}

func object(description string, properties props) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Description: description, Type: "object", Properties: properties}
}

func list(description string, item apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Description: description, Type: "array", XListType: new("atomic"),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
	}
}

func text(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Description: description, Type: "string"}
}

func limited(description string, length int64) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Description: description, Type: "string", MaxLength: &length}
}

func date(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Description: description, Type: "string", Format: "date-time"}
}

func integer(description string) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Description: description, Type: "integer", Format: "int64"}
}

// addFields adds the kind's own fields, with the result types of their expressions,
// to the schema of the status.
func addFields(kind catalog.Kind, status *apiextensionsv1.JSONSchemaProps) {
	for _, name := range kind.Fields.Names() {
		shape, _ := kind.Fields.Shape(name)
		schema := shaped(shape)
		schema.Description = computedBy(kind.Status[name])
		status.Properties[name] = schema
	}
}

// outputs returns the schema of the outputs that are published in the status.
func outputs(kind catalog.Kind) apiextensionsv1.JSONSchemaProps {
	s := object("Outputs of the release that are not sensitive.", props{})
	for _, output := range kind.Watch.Outputs {
		if shape, public := kind.Outputs.Public.Shape(output.Name); public {
			schema := shaped(shape)
			schema.Description = computedBy(output.Value)
			s.Properties[output.Name] = schema
		}
	}
	return s
}

func computedBy(expression string) string {
	return "Computed by the expression: " + strings.Join(strings.Fields(expression), " ")
}

// shaped returns the schema of an expression's result. A result whose type is only
// known at run time may be of any type.
func shaped(shape kindstatus.Shape) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: string(shape.Type), Format: shape.Format}
	switch shape.Type {
	case "":
		s.XPreserveUnknownFields = new(true)
	case kindstatus.TypeInteger:
		s.Format = "int64"
	case kindstatus.TypeList:
		return list("", shaped(*shape.Item))
	case kindstatus.TypeMap:
		item := shaped(*shape.Item)
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &item}
	}
	return s
}
