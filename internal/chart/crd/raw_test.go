package crd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/testenv"
)

const verdictsFile = "testdata/verdicts.yaml"

// verdicts returns, by construct, the API server's reaction to a CRD that contains the
// construct unchanged.
func verdicts(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(verdictsFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// testRaw tests the API server's reaction to unchanged constructs, which shows why the
// conversion is needed.
func testRaw(t *testing.T, c client.Client) {
	got := map[string]string{}
	fields, extra := map[string]any{}, map[string]any{}
	keys := map[string]construct{}
	for i, construct := range constructs(t) {
		key := fmt.Sprintf("v%d", i)
		schema := decode(t, construct.Schema)
		if err := rawCreate(t, c, map[string]any{key: schema}, construct.extra(t), true); err != nil {
			got[construct.Name] = "rejected: " + reasonOf(err)
			continue
		}
		got[construct.Name], fields[key], keys[key] = "accepted", schema, construct
	}
	if err := rawCreate(t, c, fields, extra, false); err != nil {
		t.Fatal(err)
	}
	definition := single("Raw", nil)
	served(t, c, definition)
	for key, construct := range keys {
		for _, value := range construct.Valid {
			if deviation := deviationOf(t, c, key, decode(t, value)); deviation != "" && !strings.Contains(got[construct.Name], deviation) {
				got[construct.Name] += ", but " + deviation + " " + code(t, value)
				break
			}
		}
	}
	if testenv.Update() {
		data, err := yaml.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(verdictsFile, append([]byte("# The API server's verdicts on CRDs that contain the constructs unchanged; written by -update.\n"), data...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range verdicts(t) {
		if got[name] != want {
			t.Errorf("%s: the API server's verdict is %q, want %q", name, got[name], want)
		}
		delete(got, name)
	}
	for name, verdict := range got {
		t.Errorf("%s: %s has no verdict; want %q", name, verdictsFile, verdict)
	}
}

// extra returns the keywords next to the properties of the document.
func (c construct) extra(t *testing.T) map[string]any {
	t.Helper()
	extra := map[string]any{}
	for keyword, value := range c.Root {
		extra[keyword] = decode(t, value)
	}
	if c.Definitions != nil {
		extra["definitions"] = decode(t, c.Definitions)
	}
	return extra
}

// rawCreate creates a CRD whose spec has the fields, with kubectl's strict validation.
func rawCreate(t *testing.T, c client.Client, fields, extra map[string]any, dry bool) error {
	t.Helper()
	schema := map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}}}
	maps.Copy(schema, extra)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "raws.test.example.com"},
		"spec": map[string]any{
			"group": "test.example.com", "scope": "Namespaced",
			"names":    map[string]any{"kind": "Raw", "listKind": "RawList", "plural": "raws", "singular": "raw"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema}}},
		},
	}}
	options := []client.CreateOption{client.FieldValidation(metav1.FieldValidationStrict)}
	if dry {
		options = append(options, client.DryRunAll)
	}
	return c.Create(t.Context(), definition, options...)
}

// deviationOf returns what the API server does to a valid value, empty if it stores the
// value unchanged.
func deviationOf(t *testing.T, c client.Client, key string, value any) string {
	t.Helper()
	cr := resource(single("Raw", nil), map[string]any{key: value})
	if err := c.Create(t.Context(), cr); apierrors.IsInvalid(err) {
		return "rejects"
	} else if err != nil {
		t.Fatal(err)
	}
	if spec, _ := cr.Object["spec"].(map[string]any); !reflect.DeepEqual(spec[key], value) {
		return "prunes"
	}
	return ""
}

var (
	unknownField = regexp.MustCompile(`unknown field "[^"]*\.([^".]+)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\S+) into Go struct field \S+?([^.\s]+) of type (\S+)`)
)

// reasonOf returns the reason of a rejection.
func reasonOf(err error) string {
	if match := unknownField.FindStringSubmatch(err.Error()); match != nil {
		return "unknown field " + match[1]
	}
	if match := wrongType.FindStringSubmatch(err.Error()); match != nil {
		return fmt.Sprintf("%s is %s", match[2], match[1])
	}
	var reasons []string
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			_, reason, _ := strings.Cut(cause.Message, ": ")
			reasons = append(reasons, cause.Field[strings.LastIndex(cause.Field, ".")+1:]+": "+cmp.Or(reason, cause.Message))
		}
	}
	if len(reasons) > 0 {
		// The API server reports the causes in random order.
		return slices.Min(reasons)
	}
	data, _ := json.Marshal(err.Error())
	return string(data)
}
