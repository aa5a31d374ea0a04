package scaffold_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/testenv"
)

// sampled maps kinds to charts and the expected spec of their samples.
var sampled = map[string]struct {
	chart map[string]string
	spec  map[string]any
}{
	"Site": {web, map[string]any{"host": "web.example.com"}},
	// No schema and no values.
	"Empty": {map[string]string{"Chart.yaml": boxChart["Chart.yaml"]}, map[string]any{}},
	// No field is required: the sample has the first default.
	"Box": {boxChart, map[string]any{"size": int64(1)}},
	"Nested": {map[string]string{
		"Chart.yaml":  boxChart["Chart.yaml"],
		"values.yaml": "\xEF\xBB\xBFnone: null\nempty: ''\nlong: |\n  # a\n  b\n",
		"values.schema.json": `{"type": "object", "required": ["a", "list", "mode", "ratio", "on", "name", "open"], "properties": {
			"a": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "maxLength": 3}, "c": {"type": "string"}}},
			"list": {"type": "array", "minItems": 2, "items": {"type": "integer", "exclusiveMinimum": 5}},
			"mode": {"enum": ["Fast", "Slow"]}, "ratio": {"type": "integer", "maximum": -3}, "on": {"type": "boolean"},
			"name": {"type": "string", "minLength": 9}, "open": {}, "none": {}, "empty": {}, "long": {}}}`,
	}, map[string]any{
		"a": map[string]any{"b": "exa"}, "list": []any{int64(6), int64(6)}, "mode": "Fast", "ratio": int64(-3), "on": false,
		"name": "xxxxxxxxx", "open": "example",
	}},
	// A value with a pattern cannot be derived: the sample has the values of an example.
	"Pattern": {map[string]string{
		"Chart.yaml":          boxChart["Chart.yaml"],
		"values.schema.json":  `{"type": "object", "required": ["at"], "properties": {"at": {"type": "string"}, "key": {"type": "string", "pattern": "^k-[0-9]+$"}}, "minProperties": 2}`,
		"ci/b-values.yaml":    "at: b\n",
		"ci/full-values.yaml": "at: a\nkey: k-1\nmore: [{a: 1}]\n",
	}, map[string]any{"at": "a", "key": "k-1", "more": []any{map[string]any{"a": int64(1)}}}},
}

// TestSamples_AreAcceptedByAPIServer creates each sample unchanged, and with all
// commented values.
func TestSamples_AreAcceptedByAPIServer(t *testing.T) {
	dir := newProject(t)
	for kind, test := range sampled {
		chart := writeFiles(t, filepath.Join(dir, "charts", strings.ToLower(kind)), test.chart)
		if plan := add(t, dir, scaffold.Add{Chart: chart, Kind: kind, Group: "shop", Version: "v1", Allow: new(true)}); kind != "Site" && plan.Unsettled {
			t.Errorf("%s: notes %q", kind, plan.Notes)
		}
	}
	config := testenv.Start(t).Config
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	files := tree(t, dir)
	for kind, test := range sampled {
		t.Run(kind, func(t *testing.T) {
			lower := strings.ToLower(kind)
			definition, sample := decode(t, files["config/crd/bases/shop.example.com_"+pluralOf(lower)+".yaml"]), files["config/samples/shop_v1_"+lower+".yaml"]
			if err := c.Create(t.Context(), definition); err != nil {
				t.Fatal(err)
			}
			object := decode(t, sample)
			object.SetNamespace(metav1.NamespaceDefault)
			if diff := cmp.Diff(test.spec, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, testenv.Limit, true, func(ctx context.Context) (bool, error) {
				err := c.Create(ctx, object.DeepCopy())
				return !meta.IsNoMatchError(err), client.IgnoreNotFound(ignoreNoMatch(err))
			})
			if err != nil {
				t.Fatalf("%v\n%s", err, sample)
			}
			all := decode(t, uncommented(sample))
			all.SetNamespace(metav1.NamespaceDefault)
			all.SetName("all")
			if kind == "Site" {
				// In values.yaml, host is only a comment.
				object := all.Object["spec"].(map[string]any)
				object["host"] = "web.example.com"
			}
			if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(all), client.FieldOwner("test")); err != nil {
				t.Errorf("%v\n%s", err, uncommented(sample))
			}
		})
	}
}

func pluralOf(lower string) string {
	return map[string]string{"box": "boxes", "empty": "empties"}[lower] + map[bool]string{true: lower + "s"}[lower != "box" && lower != "empty"]
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

// uncommented returns a sample in which the commented values are set.
func uncommented(sample string) string {
	var text strings.Builder
	spec := false
	for line := range strings.Lines(sample) {
		spec = spec || strings.HasPrefix(line, "spec:")
		value, is := strings.CutPrefix(line, "  # ")
		if spec && is && (strings.Contains(value, ": ") || strings.HasSuffix(value, ":\n") || strings.HasPrefix(value, "  ")) {
			line = "  " + value
		}
		if spec {
			line = strings.Replace(line, "spec: {}", "spec:", 1)
		}
		text.WriteString(line)
	}
	return text.String()
}

// TestSample_IncompleteIsWrittenWithNote uses a required value with a pattern.
func TestSample_IncompleteIsWrittenWithNote(t *testing.T) {
	dir := newProject(t)
	chart := writeFiles(t, dir+"/charts/key", map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: key\nversion: 1.0.0\n",
		"values.schema.json": `{"type": "object", "required": ["key"], "properties": {"key": {"type": "string", "pattern": "^k-[0-9]+$"}}}`,
	})
	plan := add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1"})
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, "the sample of Key is incomplete") || !strings.Contains(notes, "key") {
		t.Errorf("notes: %s", notes)
	}
	if sample := tree(t, dir)["config/samples/shop_v1_key.yaml"]; !strings.HasSuffix(sample, "spec:\n  key: example\n") {
		t.Errorf("the sample is\n%s", sample)
	}
}

// TestSample_OfClusterScopedKindReportsMissingNamespace uses a releaseNamespace whose field
// is not in the sample.
func TestSample_OfClusterScopedKindReportsMissingNamespace(t *testing.T) {
	dir := newProject(t)
	chart := writeFiles(t, dir+"/charts/box", boxChart)
	plan := add(t, dir, scaffold.Add{Chart: chart, Group: "shop", Version: "v1", Scope: "Cluster", ReleaseNamespace: "{{ .spec.targetNamespace }}"})
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, "the sample of Box is incomplete: releaseNamespace") {
		t.Errorf("notes: %s", notes)
	}
	if watches := tree(t, dir)["watches.yaml"]; !strings.HasSuffix(watches, "  releaseNamespace: '{{ .spec.targetNamespace }}'\n  scope: Cluster\n") {
		t.Errorf("watches.yaml ends in\n%s", watches)
	}
}
