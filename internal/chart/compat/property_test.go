package compat_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart/compat"
)

type schemaProps = apiextensionsv1.JSONSchemaProps

// apiServer validates and prunes values of one schema by the API server's own code.
type apiServer struct {
	structural *structural.Structural
	validator  validation.SchemaValidator
}

// newAPIServer returns nil for a schema that the API server rejects.
func newAPIServer(t *rapid.T, schema *schemaProps) *apiServer {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	s, err := structural.NewStructural(&internal)
	if err != nil || len(structural.ValidateStructural(field.NewPath("root"), s)) > 0 {
		return nil
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return &apiServer{s, validator}
}

// keeps reports whether the API server accepts a value and stores it unchanged.
func (s *apiServer) keeps(value any) bool {
	stored := runtime.DeepCopyJSONValue(value)
	pruning.Prune(stored, s.structural, false)
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, s.structural)
	return reflect.DeepEqual(stored, value) && len(validation.ValidateCustomResource(nil, stored, s.validator)) == 0
}

// TestCompare_ReportsEveryBreakingChange checks the guarantee of the package against
// the API server's own code. Half of the pairs are a schema and a copy with a few
// changes, the others are two unrelated schemas.
func TestCompare_ReportsEveryBreakingChange(t *testing.T) {
	pairs, broken, silent := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		from := object().Draw(t, "from")
		to := object().Draw(t, "to")
		if rapid.Bool().Draw(t, "alike") {
			to = mutated(t, from)
		}
		before, after := newAPIServer(t, from), newAPIServer(t, to)
		if before == nil || after == nil {
			t.Skip("not structural")
		}
		pairs++
		changes := compat.Compare(whole(from), whole(to))
		breaking := false
		for _, change := range changes {
			breaking = breaking || change.Breaking
		}
		if !breaking {
			silent++
		}
		for range 30 {
			value := guided(t, from, 3)
			object := map[string]any{"spec": value}
			if !before.keeps(object["spec"]) || after.keeps(object["spec"]) || undeclared(value, from, to) {
				continue
			}
			broken++
			if !breaking {
				t.Fatalf("%s is kept by\n%s\nand not by\n%s\nand the changes are %v", text(value), text(from), text(to), changes)
			}
			return
		}
	})
	t.Logf("%d pairs: %d broke a value, %d had no breaking change", pairs, broken, silent)
	if broken == 0 || silent == 0 {
		t.Errorf("%d pairs: %d broke a value, %d had no breaking change: want some of both", pairs, broken, silent)
	}
}

func TestCompare_EqualSchemasHaveNoChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := object().Draw(t, "schema")
		if changes := compat.Compare(whole(schema), whole(schema.DeepCopy())); len(changes) > 0 {
			t.Fatalf("%s: %v", text(schema), changes)
		}
	})
}

// undeclared reports whether a value has a key that only the new schema declares, in
// an object that accepted any key.
func undeclared(value any, from, to *schemaProps) bool {
	if from == nil || to == nil {
		return false
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if from.Items == nil {
				// The old list had items of any type.
				return to.Items != nil
			}
			if to.Items != nil && undeclared(item, from.Items.Schema, to.Items.Schema) {
				return true
			}
		}
	case map[string]any:
		for key, inner := range v {
			old, had := from.Properties[key]
			next, has := to.Properties[key]
			switch {
			case had && has && undeclared(inner, &old, &next):
				return true
			case had && !has && to.AdditionalProperties != nil && undeclared(inner, &old, to.AdditionalProperties.Schema):
				return true
			case !had && has && from.AdditionalProperties == nil:
				return true
			case !had && has && undeclared(inner, from.AdditionalProperties.Schema, &next):
				return true
			case !had && !has && from.AdditionalProperties != nil && to.AdditionalProperties != nil &&
				undeclared(inner, from.AdditionalProperties.Schema, to.AdditionalProperties.Schema):
				return true
			}
		}
	}
	return false
}

func whole(spec *schemaProps) *apiextensionsv1.CustomResourceDefinition {
	root := schemaProps{Type: "object", Properties: map[string]schemaProps{"spec": *spec}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", &root)}
	return crd
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
