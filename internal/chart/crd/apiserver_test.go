package crd

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"reflect"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

var scheme = runtime.NewScheme()

// TestAPIServer installs generated CRDs in an API server. The API server must accept the
// CRDs, store valid custom resources unchanged and reject invalid ones.
func TestAPIServer(t *testing.T) {
	env, c := server(t)
	// The kinds of the subtests differ.
	parallel := func(name string, test func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
	parallel("embedded kinds", func(t *testing.T) { testEmbedded(t, c) })
	parallel("scale", func(t *testing.T) { testScale(t, c) })
	parallel("own status fields", func(t *testing.T) { testOwnFields(t, c) })
	parallel("explain", func(t *testing.T) { testExplain(t, env, c) })
	parallel("versions", func(t *testing.T) { testVersions(t, c) })
	parallel("inferred schemas", func(t *testing.T) { testInferred(t, c) })
	parallel("values that land", func(t *testing.T) { testLanded(t, c) })
	parallel("large schemas", func(t *testing.T) { testFit(t, c) })
	if folder := os.Getenv(publicCharts); folder != "" {
		parallel("public charts", func(t *testing.T) { testPublic(t, c, folder) })
	}
	parallel("constructs", func(t *testing.T) { testConstructs(t, c) })
	parallel("raw constructs", func(t *testing.T) { testRaw(t, c) })
	parallel("random schemas", func(t *testing.T) { testRandom(t, c) })
}

func testEmbedded(t *testing.T, c client.Client) {
	for _, kind := range embedded(t) {
		definition := generate(t, kind)
		install(t, c, definition)
		files, err := fs.Glob(chartwright.Files, path.Join(kind.Watch.Chart, "ci", "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: read example values: %v", kind.Kind, err)
		}
		// A kind without such a file has no required values.
		var minimal any
		for _, file := range files {
			data, err := fs.ReadFile(chartwright.Files, file)
			if err != nil {
				t.Fatal(err)
			}
			data, err = yaml.YAMLToJSON(data)
			if err != nil {
				t.Fatal(err)
			}
			values := decode(t, data)
			roundTrip(t, c, definition, file, values)
			if path.Base(file) == "minimal-values.yaml" {
				minimal = values
			}
		}
		testStatus(t, c, definition, minimal)
	}
	podSet, nginx := generate(t, embedded(t)[0]), generate(t, embedded(t)[1])
	open := map[string]any{"anything": map[string]any{"at": []any{"all", nil}}}
	for name, tc := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		spec       any
		valid      bool
	}{
		"no spec":                         {podSet, nil, true},
		"an empty spec":                   {podSet, map[string]any{}, true},
		"global":                          {podSet, map[string]any{"global": open}, true},
		"null for a default":              {podSet, map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": nil}}}, true},
		"a negative integer":              {podSet, map[string]any{"replicas": int64(-1)}, false},
		"a string for an integer":         {podSet, map[string]any{"replicas": "three"}, false},
		"a value outside an enum":         {podSet, map[string]any{"image": map[string]any{"pullPolicy": "Sometimes"}}, false},
		"an invalid quantity":             {podSet, map[string]any{"resources": map[string]any{"limits": map[string]any{"cpu": "much"}}}, false},
		"no spec despite required fields": {nginx, nil, false},
		"a missing required field":        {nginx, map[string]any{"port": int64(80)}, false},
		"an integer above the maximum":    {nginx, map[string]any{"replicaCount": int64(1), "port": int64(65536)}, false},
		"all required fields":             {nginx, map[string]any{"replicaCount": int64(0), "port": int64(80)}, true},
		"null for a required field":       {nginx, map[string]any{"replicaCount": nil, "port": int64(80)}, false},
		"a list for the spec":             {nginx, []any{}, false},
	} {
		if tc.valid {
			roundTrip(t, c, tc.definition, name, tc.spec)
		} else {
			rejected(t, c, tc.definition, name, tc.spec)
		}
	}
	// kubectl uses strict validation, which rejects keys that would be dropped.
	strict := client.WithFieldValidation(c, client.FieldValidation(metav1.FieldValidationStrict))
	if err := strict.Create(t.Context(), resource(podSet, map[string]any{"replica": int64(1)})); err == nil {
		t.Error("an undeclared key was accepted")
	}
}

// testStatus writes every field of the status of Chartwright, and then a status of the
// operator-sdk.
func testStatus(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, spec any) {
	cr := resource(definition, spec)
	if err := c.Create(t.Context(), cr); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now().Rfc3339Copy()
	full, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&api.Status{
		ObservedGeneration: 1, State: "Deployed",
		Conditions: []metav1.Condition{{
			Type: api.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: now,
			Reason: api.ReasonDeployed, Message: "Release deployed.",
		}},
		Release: &api.ReleaseStatus{
			Name: "a", Namespace: "b", Revision: 2, Status: api.StatusDeployed,
			Chart: "c-1.0.0", ChartVersion: "1.0.0", AppVersion: "1", LastDeployed: &now,
		},
		DeployedRelease: &api.DeployedRelease{Name: "a"},
		History: []api.HistoryEntry{{
			Revision: 2, Status: api.StatusDeployed, ChartVersion: "1.0.0", AppVersion: "1", LastDeployed: &now, Description: "done",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]any{
		"conditions": []any{map[string]any{"type": "Initialized", "status": "True"}},
		"replicas":   int64(3), "podNames": []any{"a", "b"},
	}
	for _, want := range []map[string]any{full, old} {
		cr.Object["status"] = runtime.DeepCopyJSON(want)
		if err := c.Status().Update(t.Context(), cr); err != nil {
			t.Fatalf("%s: update status: %v", definition.Name, err)
		}
		if !reflect.DeepEqual(cr.Object["status"], any(want)) {
			t.Errorf("%s: got status\n%v\nwant\n%v", definition.Name, cr.Object["status"], want)
		}
	}
}

// testConstructs tests every construct as a field of one kind.
func testConstructs(t *testing.T, c client.Client) {
	fields := props{}
	all := constructs(t)
	for i, construct := range all {
		spec, _ := construct.convert(t)
		fields[fmt.Sprintf("v%d", i)] = spec.Properties["v"]
	}
	definition := single("Construct", fields)
	install(t, c, definition)
	for i, construct := range all {
		key := fmt.Sprintf("v%d", i)
		for _, value := range construct.Valid {
			roundTrip(t, c, definition, construct.Name, map[string]any{key: decode(t, value)})
		}
		for _, value := range construct.Invalid {
			rejected(t, c, definition, construct.Name, map[string]any{key: decode(t, value)})
		}
	}
}

// testRandom checks the guarantee of the package with random schemas: the API server
// accepts every value that Helm accepts, and stores it unchanged.
func testRandom(t *testing.T, c client.Client) {
	const schemas = 200
	values := testenv.Attempts(20, 40)
	fields := props{}
	all := make([]construct, schemas)
	made := make([]generator, schemas)
	for i := range schemas {
		made[i] = generator{rand.New(rand.NewPCG(1, uint64(i)))}
		schema := made[i].schema(3)
		all[i] = construct{Schema: marshal(t, schema)}
		if made[i].IntN(2) == 0 {
			if value, ok := made[i].value(3).(map[string]any); ok {
				all[i].Defaults = marshal(t, value)
			}
		}
		spec, _ := all[i].convert(t)
		fields[fmt.Sprintf("v%d", i)] = spec.Properties["v"]
	}
	definition := single("Random", fields)
	install(t, c, definition)
	tried := 0
	for i, construct := range all {
		validate := construct.validator(t)
		for range values {
			value := made[i].value(3)
			if validate(marshal(t, value)) != nil {
				continue
			}
			tried++
			value = withoutEnumNulls(value, fields[fmt.Sprintf("v%d", i)])
			if value == nil {
				continue
			}
			roundTrip(t, c, definition, fmt.Sprintf("schema %s, defaults %s", construct.Schema, construct.Defaults),
				map[string]any{fmt.Sprintf("v%d", i): value})
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d values of %d schemas", tried, schemas)
	if tried < schemas*values/10 {
		t.Errorf("got %d tested values, want at least %d", tried, schemas*values/10)
	}
}

// withoutEnumNulls removes the nulls that the API server drops because a field with an
// enum cannot be nullable.
func withoutEnumNulls(value any, schema apiextensionsv1.JSONSchemaProps) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range v {
			field, ok := schema.Properties[key]
			if !ok && schema.AdditionalProperties != nil {
				field = *schema.AdditionalProperties.Schema
			}
			if inner != nil || len(field.Enum) == 0 {
				kept[key] = withoutEnumNulls(inner, field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, inner := range v {
			kept[i] = inner
			if schema.Items != nil {
				kept[i] = withoutEnumNulls(inner, *schema.Items.Schema)
			}
		}
		return kept
	}
	return value
}

// single returns the CRD of a kind whose spec has these fields.
func single(name string, fields props) *apiextensionsv1.CustomResourceDefinition {
	kind := catalog.Kind{Watch: watches.Watch{Group: "test.example.com", Version: "v1", Kind: name}}
	spec := object("", fields)
	root := object("", props{"spec": spec, "status": status(catalog.Kind{})})
	return crdOf(kind, &root)
}

func roundTrip(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, name string, spec any) {
	t.Helper()
	cr := resource(definition, runtime.DeepCopyJSONValue(spec))
	if err := c.Create(t.Context(), cr); err != nil {
		t.Errorf("%s: %s was rejected: %v", name, marshal(t, spec), err)
		return
	}
	read := resource(definition, nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), read); err != nil {
		t.Fatal(err)
	}
	if got := read.Object["spec"]; !reflect.DeepEqual(got, spec) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, marshal(t, got), marshal(t, spec))
	}
}

func rejected(t *testing.T, c client.Client, definition *apiextensionsv1.CustomResourceDefinition, name string, spec any) {
	t.Helper()
	if err := c.Create(t.Context(), resource(definition, spec)); !apierrors.IsInvalid(err) {
		t.Errorf("%s: %s was not rejected: %v", name, marshal(t, spec), err)
	}
}

func marshal(t *testing.T, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
