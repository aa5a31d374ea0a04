package crd

import (
	"reflect"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/watches"
)

// versioned returns a kind with three versions.
func versioned(t *testing.T) catalog.Kind {
	t.Helper()
	box := kind(t, map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: box\nversion: 1.0.0",
		"values.schema.json": `{"type": "object", "properties": {"size": {"type": "integer"}}}`,
	})
	box.Kind = "Parcel"
	box.Versions = []watches.CRDVersion{
		{Name: "v1", Storage: true},
		{Name: "v1beta1", Deprecated: true, DeprecationWarning: "v1beta1 will be removed, use v1"},
		{Name: "v1alpha1", Served: new(false), Deprecated: true},
	}
	return box
}

func TestGenerate_Versions(t *testing.T) {
	all := generate(t, versioned(t)).Spec.Versions
	for _, v := range all {
		if v.Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"].Type != "integer" || v.Subresources.Status == nil || len(v.AdditionalPrinterColumns) == 0 {
			t.Errorf("version %s has no schema, status subresource or printer columns", v.Name)
		}
	}
	if len(all) != 3 || !all[0].Served || !all[0].Storage || !all[1].Served || all[1].Storage || all[2].Served || all[2].Storage {
		t.Errorf("got versions %+v", all)
	}
	if all[0].Deprecated || !all[1].Deprecated || !all[2].Deprecated || *all[1].DeprecationWarning != "v1beta1 will be removed, use v1" || all[2].DeprecationWarning != nil {
		t.Errorf("got deprecated %v %v %v", all[0].Deprecated, all[1].Deprecated, all[2].Deprecated)
	}
}

func TestNamesOf_DoesNotRepeatCategory(t *testing.T) {
	if got := namesOf(watches.Watch{Kind: "Box", Categories: []string{"chartwright", "all"}}).Categories; !slices.Equal(got, []string{"chartwright", "all"}) {
		t.Errorf("got categories %v", got)
	}
}

func TestDiff_UsualColumnsAndCategoryAreCompatible(t *testing.T) {
	now := generate(t, versioned(t))
	before := now.DeepCopy()
	before.Spec.Names.Categories = nil
	for i := range before.Spec.Versions {
		before.Spec.Versions[i].AdditionalPrinterColumns = usual()[:3]
	}
	if breaks := compat.Breaks(before, now); breaks != "" {
		t.Errorf("the upgrade breaks custom resources: %s", breaks)
	}
	for _, d := range Diff([]*apiextensionsv1.CustomResourceDefinition{before}, []*apiextensionsv1.CustomResourceDefinition{now}) {
		if d.State != Unchanged || d.Breaking() != 0 {
			t.Errorf("got difference %+v, want none", d)
		}
	}
}

// testVersions writes an object in one version and reads it in another.
func testVersions(t *testing.T, c client.Client) {
	definition := generate(t, versioned(t))
	install(t, c, definition)
	cr := resource(definition, map[string]any{"size": int64(1), "more": []any{"a"}})
	cr.SetAPIVersion("example.com/v1beta1")
	if err := c.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	read := &unstructured.Unstructured{}
	read.SetAPIVersion("example.com/v1")
	read.SetKind("Parcel")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), read); err != nil {
		t.Fatal(err)
	}
	if want := (map[string]any{"size": int64(1), "more": []any{"a"}}); !reflect.DeepEqual(read.Object["spec"], any(want)) {
		t.Errorf("got spec %v, want %v", read.Object["spec"], want)
	}
	read.SetAPIVersion("example.com/v1alpha1")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), read); err == nil {
		t.Error("an unserved version can be read")
	}
}
