package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

// props is short for the properties of a schema.
type props = map[string]apiextensionsv1.JSONSchemaProps

// status returns the schema of api.Status with the kind's own fields. The schema
// preserves unknown fields, because another operator may have written the status.
func status(kind catalog.Kind) apiextensionsv1.JSONSchemaProps {
	s := object("Observed state of the release. The operator computes it from the cluster and never reads it back, so clearing it has no effect.", props{
		"observedGeneration": integer("Generation of the spec that the conditions refer to."),
		"state":              text("State of the release in one or two words."),
		"conditions":         conditions(),
		"release": object("Newest revision of the Helm release.", props{
			"name":         text("Name of the release, as printed by helm list."),
			"namespace":    text("Namespace of the release."),
			"revision":     integer("Number of the revision."),
			"status":       text("Helm's status of the revision, such as deployed, failed or pending-upgrade."),
			"chart":        text("Name and version of the chart, as printed by helm list."),
			"chartVersion": text("Version of the chart."),
			"appVersion":   text("Version of the application, from Chart.yaml."),
			"lastDeployed": date("Time at which Helm created the revision."),
		}),
		"deployedRelease": object("Name of the release in the field that the operator-sdk uses.", props{
			"name": text("Name of the release."),
		}),
		"update": object("Chart that the release will be upgraded to, if its chart has changed.", props{
			"chart":        text("Name and version of the chart."),
			"chartVersion": text("Version of the chart."),
			"place":        integer("Position in the rollout queue, from 1."),
			"of":           integer("Number of custom resources in the rollout."),
		}),
		"plan": object("Action that waits for an approval.", props{
			"digest":  text("Value of chartwright.dev/approve that approves it."),
			"summary": text("Operations that need the approval."),
		}),
		"rollback": object("Rollback that is in effect, if any.", props{
			"to":    integer("Revision that the release was rolled back to."),
			"from":  integer("Revision that the rollback replaced."),
			"since": date("Time of the rollback."),
		}),
		"previous": integer("Revision that a rollback to previous selects, if the newest change has made no revision."),
		"answered": object("Values of one-time request annotations that the operator has processed. The conditions report whether a request succeeded, failed or was refused.", props{
			"rollbackTo":           text("Value of chartwright.dev/rollback-to."),
			"reconcileRequestedAt": text("Value of chartwright.dev/reconcile-requested-at."),
			"force":                text("Value of chartwright.dev/force."),
			"test":                 text("Value of chartwright.dev/test."),
		}),
		"outputs":       outputs(kind),
		"outputsSecret": text("Name of the Secret with the sensitive outputs."),
		"dependencies": list("Objects that the custom resource depends on. They must be ready before an install or upgrade.", object("Object, or all objects that the selector matches.", props{
			"apiVersion": text("API version of the object."),
			"kind":       text("Kind of the object."),
			"namespace":  text("Namespace of the object."),
			"name":       text("Name of the object."),
			"selector":   text("Label selector."),
		})),
		"resources": object("Readiness of the release's resources.", props{
			"total": integer("Number of resources."),
			"ready": integer("Number of ready resources."),
			"notReady": list("The first ten resources that are not ready.", object("Resource that is not ready.", props{
				"kind":      text("Kind of the resource."),
				"namespace": text("Namespace of the resource."),
				"name":      text("Name of the resource."),
				"reason":    text("Why the resource is not ready, as one CamelCase word."),
				"message":   text("Why the resource is not ready, as a sentence."),
			})),
		}),
		"history": list("Stored revisions, newest first.", object("Stored revision of the release.", props{
			"revision":     integer("Number of the revision."),
			"status":       text("Helm's status of the revision."),
			"chartVersion": text("Version of the chart."),
			"appVersion":   text("Version of the application, from Chart.yaml."),
			"lastDeployed": date("Time at which Helm created the revision."),
			"description":  text("Helm's description of the revision."),
		})),
	})
	if !kind.Outputs.Exist() {
		delete(s.Properties, "outputs")
		delete(s.Properties, "outputsSecret")
	}
	addFields(kind, &s)
	s.XPreserveUnknownFields = new(true)
	return s
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
