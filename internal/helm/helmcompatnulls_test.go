package helm

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/testenv"
)

// nullable is a CRD with fields of all types that may be null.
const nullable = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gaps.nulls.example.com}
spec:
  group: nulls.example.com
  scope: Namespaced
  names: {plural: gaps, kind: Gap}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              list: {type: array, items: {type: string}}
              object: {type: object, properties: {a: {type: string}}}
              text: {type: string}
              number: {type: integer}
              defaulted: {type: string, default: d}
              may: {type: string, nullable: true}
              mayDefaulted: {type: string, nullable: true, default: d}
              map: {type: object, additionalProperties: {type: string}}
              mayMap: {type: object, additionalProperties: {type: string, nullable: true}}
              any: {x-kubernetes-preserve-unknown-fields: true}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
              intOrString: {x-kubernetes-int-or-string: true}
              items: {type: array, items: {type: object, properties: {envFrom: {type: array, items: {type: string}}, name: {type: string}}}}
              keyed:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {envFrom: {type: array, items: {type: string}}, name: {type: string}, other: {type: string}}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
`

func gap(spec string) string {
	return "{apiVersion: nulls.example.com/v1, kind: Gap, metadata: {name: x}, spec: {" + spec + "}}"
}

var nullCases = []upgradeCase{
	{name: "list", from: gap("list: null")},
	{name: "object", from: gap("object: null")},
	{name: "field of an object", from: gap("object: {a: null}")},
	{name: "text", from: gap("text: null, number: 1")},
	{name: "number", from: gap("number: null")},
	{name: "with a default", from: gap("defaulted: null")},
	{name: "nullable", from: gap("may: null")},
	{name: "nullable with a default", from: gap("mayDefaulted: null")},
	{name: "value of a map", from: gap("map: {a: null, b: c}")},
	{name: "value of a map with dots", from: gap("map: {a.b/c: null, b: c}")},
	{name: "nullable value of a map", from: gap("mayMap: {a: null}")},
	{name: "anything", from: gap("any: null")},
	{name: "within anything", from: gap("any: {a: null, b: [null]}")},
	{name: "within an open object", from: gap("open: {a: null}")},
	{name: "int or string", from: gap("intOrString: null")},
	{name: "item of a list", from: gap("list: [null, a]")},
	{name: "field of an item", from: gap("items: [{name: a}, {name: b, envFrom: null}, {name: c, envFrom: [d]}]")},
	{name: "field of a keyed item", from: gap("keyed: [{name: a}, {name: b, envFrom: null}]")},
	{name: "item of a set", from: gap("set: [null]")},
	{name: "unknown field", from: gap("bogus: null, text: a")},
	{name: "within an embedded resource", from: gap("pod: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: null}}")},
	{name: "whole spec", from: "{apiVersion: nulls.example.com/v1, kind: Gap, metadata: {name: x}, spec: null}"},
	{name: "labels", from: "{apiVersion: nulls.example.com/v1, kind: Gap, metadata: {name: x, annotations: null, labels: {a: null}}, spec: {text: a}}"},
	{name: "many at once", from: gap("list: null, object: null, text: null, number: null, may: null, items: [{envFrom: null}, {envFrom: null}]")},
	{name: "value to null", from: gap("list: [a], text: a"), to: gap("list: null, text: a")},
	{name: "null to value", from: gap("list: null, text: a"), to: gap("list: [a], text: a")},
	{name: "nullable value to null", from: gap("may: a, text: a"), to: gap("may: null, text: a"), differs: "Helm's merge patch removes the field"},
	{name: "nullable null to absent", from: gap("may: null, text: a"), to: gap("text: a")},
	{name: "nullable null to value", from: gap("may: null, text: a"), to: gap("may: b, text: a")},
	{name: "defaulted value to null", from: gap("defaulted: a, text: a"), to: gap("defaulted: null, text: a")},
	{name: "unchanged null and another change", from: gap("list: null, text: a"), to: gap("list: null, text: b")},
	{name: "nullable unchanged null and another change", from: gap("may: null, text: a"), to: gap("may: null, text: b")},
	{name: "null in an item and another change", from: gap("items: [{name: a, envFrom: [a]}]"), to: gap("items: [{name: b}, {name: a, envFrom: null}]")},
	{name: "keyed null in an item and another change", from: gap("keyed: [{name: a, envFrom: [a]}]"), to: gap("keyed: [{name: b}, {name: a, envFrom: null}]")},
	{name: "field dropped", from: gap("text: a, list: [a]"), to: gap("text: a")},
	{name: "unknown field with a value", from: gap("bogus: 1, text: a")},
	{name: "number for a string", from: gap("text: 1")},
	{name: "number beyond", from: gap("number: 99999999999999999999")},
	{name: "fraction", from: gap("number: 1.5")},
	{name: "duplicate in a set", from: gap("set: [a, a]")},
	{name: "duplicate key", from: gap("keyed: [{name: a, other: b}, {name: a, other: c}]"), helmRefuses: true},
	{name: "keyed items change order", from: gap("keyed: [{name: a}, {name: b}]"), to: gap("keyed: [{name: b}, {name: a}]")},
	{name: "set loses an item", from: gap("set: [a, b]"), to: gap("set: [b]")},
	{name: "list replaced", from: gap("items: [{name: a}]"), to: gap("items: [{name: b}]")},
}

// TestApply_DropsForbiddenNulls tests that the operator drops nulls like the API server
// does for Helm's patches.
func TestApply_DropsForbiddenNulls(t *testing.T) {
	startAPIServer(t)
	installGap(t)
	for _, test := range nullCases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			compare(t, test)
		})
	}
}

func installGap(t *testing.T) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(nullable)), &crd.Object); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gaps := client.Resource(schema.GroupVersionResource{Group: "nulls.example.com", Version: "v1", Resource: "gaps"})
	served := func(ctx context.Context) (bool, error) {
		_, err := gaps.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, testenv.Limit, true, served); err != nil {
		t.Fatal(err)
	}
}
