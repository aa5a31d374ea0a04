package crd

import (
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
)

// scaled returns a kind whose chart has this schema and whose scale has this path.
func scaled(t *testing.T, schema, path string) catalog.Kind {
	t.Helper()
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: box\nversion: 1.0.0"}
	if schema != "" {
		files["values.schema.json"] = schema
	}
	box := kind(t, files)
	box.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: path, StatusReplicasPath: ".status.replicas", LabelSelectorPath: new(".status.selector")}
	return box
}

const closed = `{"type": "object", "additionalProperties": false, "properties": {
	"replicas": {"type": "integer"},
	"web": {"type": "object", "additionalProperties": false, "properties": {"replicas": {"type": "integer"}}},
	"pools": {"type": "object", "additionalProperties": {"type": "integer"}},
	"open": {"type": "object"}
}}`

func TestGenerate_ScaleSubresource(t *testing.T) {
	scale := generate(t, scaled(t, closed, ".spec.web.replicas")).Spec.Versions[0].Subresources.Scale
	if scale == nil || scale.SpecReplicasPath != ".spec.web.replicas" || scale.StatusReplicasPath != ".status.replicas" || *scale.LabelSelectorPath != ".status.selector" {
		t.Errorf("got scale %+v", scale)
	}
	without := scaled(t, closed, ".spec.replicas")
	without.Subresources.Scale.LabelSelectorPath = nil
	if scale := generate(t, without).Spec.Versions[0].Subresources.Scale; scale.LabelSelectorPath != nil {
		t.Errorf("got label selector path %q, want none", *scale.LabelSelectorPath)
	}
	for _, kind := range embedded(t) {
		if s := generate(t, kind).Spec.Versions[0].Subresources; (s.Scale != nil) != slices.Contains([]string{"PodSet", "Experimental", "VmGroup", "Database"}, kind.Kind) || s.Status == nil {
			t.Errorf("%s: got subresources %+v", kind.Kind, s)
		}
	}
}

func TestScale_RejectsUndeclaredField(t *testing.T) {
	for path, schema := range map[string]string{".spec.replicas": closed, ".spec.pools.blue": closed, ".spec.open.replicas": closed, ".spec.anything": ""} {
		if _, _, err := Generate(scaled(t, schema, path)); err != nil {
			t.Errorf("%s: got error %v", path, err)
		}
	}
	for _, path := range []string{".spec.replica", ".spec.web.size", ".spec.replicas.more"} {
		if _, _, err := Generate(scaled(t, closed, path)); err == nil || !strings.Contains(err.Error(), "does not declare "+path) {
			t.Errorf("%s: got error %v, want an undeclared field", path, err)
		}
	}
}

// testScale updates the subresource scale, as kubectl scale does.
func testScale(t *testing.T, c client.Client) {
	definition := generate(t, scaled(t, closed, ".spec.web.replicas"))
	install(t, c, definition)
	cr := resource(definition, map[string]any{"web": map[string]any{"replicas": int64(2)}})
	if err := c.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := c.SubResource("scale").Update(t.Context(), cr, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
		t.Fatal(err)
	}
	if replicas, _, _ := unstructured.NestedInt64(cr.Object, "spec", "web", "replicas"); replicas != 3 {
		t.Errorf("got %d replicas, want 3", replicas)
	}
}
