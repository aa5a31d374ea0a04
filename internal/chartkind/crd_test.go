package chartkind

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

func readCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../config/chartkinds/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// omitted are keys of an entry that a ChartKind has in another place, or not at all: keys
// of the operator-sdk, the place of the chart, and the source that "chartwright add"
// records.
var omitted = []string{"group", "version", "kind", "chart", "source", "watchDependentResources", "dryRunOption"}

// TestCRD_HasFieldsOfTypes compares the CRD with the Go types, at every depth.
func TestCRD_HasFieldsOfTypes(t *testing.T) {
	schema := readCRD(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	names := append(slices.Clone(nameKeys), omitted...)
	want := map[string]reflect.Type{}
	for _, of := range []reflect.Type{reflect.TypeFor[Spec](), reflect.TypeFor[watches.Watch]()} {
		for key, field := range fieldsOf(of) {
			if of == reflect.TypeFor[Spec]() || !slices.Contains(names, key) {
				want[key] = field
			}
		}
	}
	compare(t, "spec", want, schema["spec"])
	compare(t, "status", fieldsOf(reflect.TypeFor[Status]()), schema["status"])
	for name, field := range schema["spec"].Properties {
		if field.Description == "" {
			t.Errorf("spec.%s has no description", name)
		}
	}
}

// fieldsOf returns the JSON fields of a struct.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" && field.IsExported() {
			fields[name] = field.Type
		}
	}
	return fields
}

func compare(t *testing.T, at string, want map[string]reflect.Type, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	for name, field := range want {
		property, found := schema.Properties[name]
		if !found {
			t.Errorf("%s.%s is missing in the CRD", at, name)
			continue
		}
		compareType(t, at+"."+name, field, property)
	}
	for name := range schema.Properties {
		if _, found := want[name]; !found {
			t.Errorf("%s.%s is in the CRD, and the types do not have it", at, name)
		}
	}
}

func compareType(t *testing.T, at string, field reflect.Type, property apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	kind := ""
	switch {
	case field == reflect.TypeFor[metav1.Duration](), field == reflect.TypeFor[metav1.Time](), field.Kind() == reflect.String:
		kind = "string"
	case field.Kind() == reflect.Bool:
		kind = "boolean"
	case field.Kind() == reflect.Int, field.Kind() == reflect.Int32, field.Kind() == reflect.Int64:
		kind = "integer"
	case field.Kind() == reflect.Slice:
		kind = "array"
		if property.Items == nil || property.Items.Schema == nil {
			t.Errorf("%s: no items", at)
			return
		}
		compareType(t, at+"[]", field.Elem(), *property.Items.Schema)
	case field.Kind() == reflect.Map:
		kind = "object"
		if property.AdditionalProperties == nil {
			t.Errorf("%s: no additionalProperties", at)
		}
	case field.Kind() == reflect.Struct:
		kind = "object"
		compare(t, at, fieldsOf(field), property)
	}
	if property.Type != kind {
		t.Errorf("%s has type %q, want %q", at, property.Type, kind)
	}
}

// TestCRD_ValidatesOnAPIServer creates and changes ChartKinds on an API server.
func TestCRD_ValidatesOnAPIServer(t *testing.T) {
	env := testenv.Start(t)
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{readCRD(t)}}); err != nil {
		t.Fatal(err)
	}
	server, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, spec string) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{}
		text := "apiVersion: chartwright.dev/v1alpha1\nkind: ChartKind\nmetadata: {name: " + name + "}\nspec:\n  " + strings.ReplaceAll(spec, "\n", "\n  ")
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		return object, server.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
	}
	for i, test := range []struct {
		name, spec string
		// want is a part of the message, empty for a valid spec.
		want string
	}{
		{"oci", fromRegistry + names, ""},
		{"oci with a port", "chart: {oci: 'oci://127.0.0.1:5000/charts/web_a'}\n" + names, ""},
		{"url", "chart: {url: 'https://a.test/web-1.2.3.tgz', digest: 'sha256:" + strings.Repeat("0", 64) + "'}\n" + names, ""},
		{"repo", "chart: {repo: 'https://a.test/charts', name: web, secretRef: {name: a}, interval: 1m30s}\n" + names, ""},
		{"every kind of field", fromRegistry + names + "allow: {clusterScoped: [A.b.c]}\nhealth: [{apiVersion: v1, kind: Pod, ready: 'true'}]\nsubresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}", ""},
		{"no chart", names, "spec.chart: Required"},
		{"no names", fromRegistry, "spec.names: Required"},
		{"an empty chart", "chart: {}\n" + names, "exactly one of oci, url and repo"},
		{"two sources", "chart: {oci: 'oci://a.test/b', url: 'https://a.test/b.tgz'}\n" + names, "exactly one of oci, url and repo"},
		{"a repo without a name", "chart: {repo: 'https://a.test'}\n" + names, "repo and name belong together"},
		{"a name without a repo", "chart: {oci: 'oci://a.test/b', name: c}\n" + names, "repo and name belong together"},
		{"oci with a tag", "chart: {oci: 'oci://a.test/b:1.0'}\n" + names, "spec.chart.oci"},
		{"oci with credentials", "chart: {oci: 'oci://user:pass@a.test/b'}\n" + names, "spec.chart.oci"},
		{"a URL with credentials", "chart: {url: 'https://user:pass@a.test/b.tgz'}\n" + names, "spec.chart.url"},
		{"a URL with a query", "chart: {url: 'https://a.test/b.tgz?token=c'}\n" + names, "spec.chart.url"},
		{"another scheme", "chart: {url: 'file:///etc/passwd'}\n" + names, "spec.chart.url"},
		{"a wrong digest", "chart: {oci: 'oci://a.test/b', digest: 'md5:1'}\n" + names, "spec.chart.digest"},
		{"a short interval", "chart: {oci: 'oci://a.test/b', interval: 4s}\n" + names, "must be at least 5s"},
		{"an interval without a unit", "chart: {oci: 'oci://a.test/b', interval: '10'}\n" + names, "spec.chart.interval"},
		{"a group of Kubernetes", fromRegistry + "names: {group: networking.k8s.io, version: v1, kind: Ingress}", "reserved"},
		{"kubernetes.io", fromRegistry + "names: {group: kubernetes.io, version: v1, kind: A}", "reserved"},
		{"a group of Chartwright", fromRegistry + "names: {group: a.chartwright.dev, version: v1, kind: A}", "reserved"},
		{"a group without a dot", fromRegistry + "names: {group: apps, version: v1, kind: A}", "spec.names.group"},
		{"a kind in lower case", fromRegistry + "names: {group: a.test, version: v1, kind: web}", "spec.names.kind"},
		{"another deletion policy", fromRegistry + names + "deletionPolicy: Delete", "spec.deletionPolicy"},
		{"an unknown field", fromRegistry + names + "chrat: a", `unknown field "spec.chrat"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := create(fmt.Sprintf("a%d", i), test.spec)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	object, err := create("changes", fromRegistry+names)
	if err != nil {
		t.Fatal(err)
	}
	created, err := Parse(object)
	if err != nil || created.Spec.Operator != DefaultOperator || created.Spec.Chart.CheckInterval() != DefaultInterval || created.Spec.DeletionPolicy != DeletionWait {
		t.Errorf("the defaults are %+v, %v", created.Spec, err)
	}
	for field, change := range map[string]string{
		"spec.names.group":  `{"spec": {"names": {"group": "b.test"}}}`,
		"spec.names.kind":   `{"spec": {"names": {"kind": "Other"}}}`,
		"spec.names.plural": `{"spec": {"names": {"plural": "others"}}}`,
		"spec.names.scope":  `{"spec": {"names": {"scope": null}}}`,
	} {
		err := server.Patch(t.Context(), object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(change)))
		if err == nil || !strings.Contains(err.Error(), "immutable; create another ChartKind") {
			t.Errorf("a change of %s: %v", field, err)
		}
	}
	status := Facts{Chart: served, Pulled: pulled}.Status(Status{}, 1, metav1.Unix(0, 0))
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		t.Fatal(err)
	}
	object.Object["status"] = written
	if err := server.Status().Update(t.Context(), object, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}}); err != nil {
		t.Errorf("the status is refused: %v", err)
	}
}
