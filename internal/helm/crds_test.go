package helm

import (
	"context"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

type (
	schemaProps = apiextensionsv1.JSONSchemaProps
	fields      = map[string]schemaProps
	crdVersion  = apiextensionsv1.CustomResourceDefinitionVersion
)

func text() schemaProps { return schemaProps{Type: "string"} }

func fieldsOf(f fields) schemaProps { return schemaProps{Type: "object", Properties: f} }

func served(name string, f fields) crdVersion {
	root := fieldsOf(f)
	return crdVersion{Name: name, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root}}
}

func crd(t *testing.T, scope apiextensionsv1.ResourceScope, versions ...crdVersion) *unstructured.Unstructured {
	t.Helper()
	c := &apiextensionsv1.CustomResourceDefinition{}
	c.Name = "things.example.com"
	c.Spec.Scope = scope
	c.Spec.Versions = versions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// Package compat tests which changes are breaking.
func TestBreaksOf(t *testing.T) {
	const namespaced, cluster = apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped
	unserved := served("v1", fields{"a": text()})
	unserved.Served = false
	open := served("v1", nil)
	open.Schema.OpenAPIV3Schema.XPreserveUnknownFields = new(true)
	openField := served("v1", fields{"a": text()})
	openField.Schema.OpenAPIV3Schema.XPreserveUnknownFields = new(true)
	live := served("v1", fields{"a": text()})
	many := served("v1", fields{"a": text(), "b": text(), "c": text(), "d": text(), "e": text(), "f": text(), "g": text()})
	const gone = ": removed, values are dropped"
	for _, test := range []struct {
		name       string
		live, want *unstructured.Unstructured
		breaks     string
	}{
		{name: "nothing changes", live: crd(t, namespaced, live), want: crd(t, namespaced, live)},
		{name: "an additional field", live: crd(t, namespaced, live), want: crd(t, namespaced, served("v1", fields{"a": text(), "b": text()}))},
		{name: "an additional version", live: crd(t, namespaced, live), want: crd(t, namespaced, served("v2", nil), live)},
		{name: "another scope", live: crd(t, namespaced, live), want: crd(t, cluster, live), breaks: "scope changed from Namespaced to Cluster"},
		{name: "a removed version", live: crd(t, namespaced, live), want: crd(t, namespaced, served("v2", fields{"a": text()})), breaks: "version v1 was removed"},
		{name: "a version is not served", live: crd(t, namespaced, live), want: crd(t, namespaced, unserved), breaks: "version v1 is no longer served"},
		{name: "a removed field", live: crd(t, namespaced, live), want: crd(t, namespaced, served("v1", nil)), breaks: "a" + gone},
		{name: "a removed field in two versions", live: crd(t, namespaced, live, served("v2", fields{"a": text()})), want: crd(t, namespaced, served("v1", nil), served("v2", nil)), breaks: "a" + gone},
		{name: "a removed field whose values are kept", live: crd(t, namespaced, openField), want: crd(t, namespaced, open)},
		{name: "a field of another type", live: crd(t, namespaced, live), want: crd(t, namespaced, served("v1", fields{"a": {Type: "integer"}})), breaks: "a: type changed from string to integer"},
		{name: "an object that allows unknown fields", live: crd(t, namespaced, live), want: crd(t, namespaced, open)},
		{name: "an object that forbids unknown fields", live: crd(t, namespaced, openField), want: crd(t, namespaced, live), breaks: "undeclared keys are dropped"},
		{name: "many removed fields", live: crd(t, namespaced, many), want: crd(t, namespaced, served("v1", nil)), breaks: strings.Join([]string{"a", "b", "c", "d", "e" + gone + "; and 2 more"}, gone+"; ")},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := breaksOf(test.live, test.want)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the breaking changes", test.breaks, got)
		})
	}
}

func TestBreaksOf_RejectsInvalidCRD(t *testing.T) {
	good := crd(t, apiextensionsv1.NamespaceScoped, served("v1", nil))
	bad := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "bad.example.com"}, "spec": "x"}}
	_, before := breaksOf(bad, good)
	_, after := breaksOf(good, bad)
	for name, err := range map[string]error{"before": before, "after": after} {
		if err == nil || !strings.Contains(err.Error(), "bad.example.com") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEstablished(t *testing.T) {
	condition := func(kind apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) any {
		return map[string]any{"type": string(kind), "status": string(status)}
	}
	for _, test := range []struct {
		name       string
		conditions []any
		want       bool
	}{
		{"just made", nil, false},
		{"its names are accepted", []any{condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue)}, false},
		{"not yet", []any{condition(apiextensionsv1.Established, apiextensionsv1.ConditionFalse)}, false},
		{"established", []any{condition(apiextensionsv1.NamesAccepted, apiextensionsv1.ConditionTrue), condition(apiextensionsv1.Established, apiextensionsv1.ConditionTrue)}, true},
	} {
		o := crd(t, apiextensionsv1.NamespaceScoped)
		o.Object["status"] = map[string]any{"conditions": test.conditions}
		if got, err := established(o); got != test.want || err != nil {
			t.Errorf("%s: %v, %v", test.name, got, err)
		}
	}
}

// An unchanged CRD costs one read in each action, and no write. A CRD that the chart or
// another user changed is applied.
func TestCRDsReplace_UnchangedCRDCostsOneRead(t *testing.T) {
	w := newWorld(t)
	group := w.namespace + ".example.com"
	name := "gauges." + group
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	t.Cleanup(func() {
		if err := crds.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// The manifest contains what generators write and the API server omits or converts.
	manifest := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + name + `
  creationTimestamp: null
  annotations: {generator: v0.1.0}
spec:
  group: ` + group + `
  scope: Namespaced
  preserveUnknownFields: false
  names: {kind: Gauge, plural: gauges, shortNames: []}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          description: ""
          properties:
            spec: {type: object, properties: {level: {type: integer, maximum: 1000000, minimum: 0, default: 1}, part: {type: number, maximum: 0.5}}}
status:
  acceptedNames: {kind: "", plural: ""}
  conditions: []
  storedVersions: []
`
	gaugeChart := func(manifest string) *chart.Chart { return mapsChart().with("crds/gauge.yaml", manifest).load(t) }
	requests := func(what string, act func(context.Context, Request) error, c *chart.Chart, digest string) []string {
		t.Helper()
		p := &disturbance{}
		w.net.armed.Store(p)
		request := w.request(c, digest, valuesOf("a="+digest))
		request.CRDs = watches.CRDsReplace
		w.must(act(t.Context(), request))
		w.net.armed.Store(nil)
		var about []string
		for _, request := range p.log() {
			if strings.Contains(request, "/customresourcedefinitions") {
				about = append(about, strings.Fields(request)[0])
			}
		}
		t.Logf("%s: %v", what, about)
		return about
	}
	if got := requests("install", w.helm.Install, gaugeChart(manifest), "one"); !slices.Contains(got, "PATCH") {
		t.Errorf("the first action sends %v", got)
	}
	version := func() string {
		t.Helper()
		live, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return live.GetResourceVersion()
	}
	before := version()
	for _, digest := range []string{"two", "three"} {
		equal(t, "the requests of an upgrade", []string{"GET"}, requests("upgrade", w.helm.Upgrade, gaugeChart(manifest), digest))
	}
	if version() != before {
		t.Error("the CRD was changed")
	}

	if _, err := crds.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"names": {"shortNames": ["g"]}}, "metadata": {"annotations": {"theirs": "yes"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := requests("after drift", w.helm.Upgrade, gaugeChart(manifest), "four"); !slices.Contains(got, "PATCH") {
		t.Errorf("after another user changed a field of the chart, the action sends %v", got)
	}
	less := strings.Replace(manifest, "  annotations: {generator: v0.1.0}\n", "", 1)
	if got := requests("after a removed field", w.helm.Upgrade, gaugeChart(less), "five"); !slices.Contains(got, "PATCH") {
		t.Errorf("after the chart dropped a field, the action sends %v", got)
	}
	live, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if annotations := live.GetAnnotations(); annotations["generator"] != "" || annotations["theirs"] != "yes" {
		t.Errorf("the CRD has the annotations %v", annotations)
	}
	equal(t, "the requests of an upgrade", []string{"GET"}, requests("upgrade", w.helm.Upgrade, gaugeChart(less), "six"))
}
