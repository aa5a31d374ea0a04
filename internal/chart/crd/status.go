package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

// props is short for the properties of a schema.
type props = map[string]apiextensionsv1.JSONSchemaProps

// status returns the schema of api.Status with the kind's own fields. It keeps
// unknown fields: a status that another operator wrote is not cut on the way.
func status(kind catalog.Kind) apiextensionsv1.JSONSchemaProps {
	s := object("What the operator reports. It is computed anew from what runs: nothing reads it back, and clearing it changes nothing.", props{
		"observedGeneration": integer("The generation of the spec that the conditions speak of."),
		"state":              text("The release's state in a word or two."),
		"conditions":         conditions(),
		"release": object("The newest revision of the Helm release.", props{
			"name":         text("Name of the release, as helm list prints it."),
			"namespace":    text("Namespace of the release."),
			"revision":     integer("Number of the revision."),
			"status":       text("Helm's word for its state: deployed, failed, pending-upgrade and so on."),
			"chart":        text("Name and version of the chart, as helm list prints them."),
			"chartVersion": text("Version of the chart."),
			"appVersion":   text("Version of the application, by the chart."),
			"lastDeployed": date("When the revision was made."),
		}),
		"deployedRelease": object("The release that is deployed, where the operator-sdk names it.", props{
			"name": text("Name of the release."),
		}),
		"update": object("The chart that is to take the place of the release's, if any.", props{
			"chart":        text("Name and version of the chart."),
			"chartVersion": text("Version of the chart."),
			"place":        integer("Place in the line of those that wait for their turn."),
			"of":           integer("How many take part in the rollout."),
		}),
		"rollback": object("The rollback that holds, if any.", props{
			"to":    integer("The revision whose manifest runs again."),
			"from":  integer("The revision that it took the place of."),
			"since": date("When the rollback was done."),
		}),
		"answered": object("The annotations that ask for something once, as soon as it was done, refused or tried in vain. The conditions tell which.", props{
			"rollbackTo":           text("Value of chartwright.dev/rollback-to."),
			"reconcileRequestedAt": text("Value of chartwright.dev/reconcile-requested-at."),
			"force":                text("Value of chartwright.dev/force."),
			"test":                 text("Value of chartwright.dev/test."),
		}),
		"resources": object("How the release's objects are.", props{
			"total": integer("How many there are."),
			"ready": integer("How many of them are ready."),
			"notReady": list("The first ten of those that are not.", object("One object.", props{
				"kind":      text("Its kind."),
				"namespace": text("Its namespace."),
				"name":      text("Its name."),
				"reason":    text("What it waits for, in a word."),
				"message":   text("What it waits for, in a sentence."),
			})),
		}),
		"history": list("The newest revisions, newest first.", object("One revision that is kept.", props{
			"revision":     integer("Number of the revision."),
			"status":       text("Helm's word for its state."),
			"chartVersion": text("Version of the chart."),
			"appVersion":   text("Version of the application, by the chart."),
			"lastDeployed": date("When the revision was made."),
			"description":  text("What Helm noted about it."),
		})),
	})
	addFields(kind, &s)
	s.XPreserveUnknownFields = new(true)
	return s
}

// conditions asks for type and status alone: the operator-sdk leaves out the
// rest now and then, and a status that it wrote must stay writable.
func conditions() apiextensionsv1.JSONSchemaProps {
	holds, generation := text("Whether it holds."), integer("The generation of the spec that this condition speaks of.")
	holds.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"True"`)}, {Raw: []byte(`"False"`)}, {Raw: []byte(`"Unknown"`)}}
	generation.Minimum = new(0.0)
	condition := object("One aspect of the state.", props{
		"type":               limited("Which aspect it is, in CamelCase.", 316),
		"status":             holds,
		"observedGeneration": generation,
		"reason":             limited("Why, as one CamelCase word for programs.", 1024),
		"message":            limited("Why, as a sentence for people.", 32768),
		"lastTransitionTime": date("When the status last changed."),
	})
	condition.Required = []string{"type", "status"}
	s := list("Ready and Deployed, and others such as Reconciling and Stalled while they hold.", condition)
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

// addFields puts the kind's own fields into the schema of its status, with the
// types that their expressions have.
func addFields(kind catalog.Kind, status *apiextensionsv1.JSONSchemaProps) {
	for _, name := range kind.Fields.Names() {
		shape, _ := kind.Fields.Shape(name)
		schema := shaped(shape)
		schema.Description = "Computed from what runs: " + strings.Join(strings.Fields(kind.Status[name]), " ")
		status.Properties[name] = schema
	}
}

// shaped is the schema of what an expression gives. What is not known before
// stays open.
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
