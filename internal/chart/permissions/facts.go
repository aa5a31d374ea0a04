package permissions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// facts are the result of the analysis of a chart. They depend only on its files and on
// the overrides of the watches entry, and can be stored as JSON.
type facts struct {
	// CRDs and CRDFolder are the CRDs and the other objects of the folders crds/. Objects and Hooks
	// are rendered.
	CRDs      []object `json:"crds,omitempty"`
	CRDFolder []object `json:"crdFolder,omitempty"`
	Objects   []object `json:"objects,omitempty"`
	Hooks     []object `json:"hooks,omitempty"`
	// Documents and Lookups are found in the syntax of the templates.
	Documents []document `json:"documents,omitempty"`
	Lookups   []lookup   `json:"lookups,omitempty"`
}

// object is an object of a chart. Content contains only fields that permissions depend on.
type object struct {
	Source  string         `json:"source"`
	Content map[string]any `json:"content"`
}

// document is a part of a template that renders objects.
type document struct {
	Path    string            `json:"path"`
	Logged  bool              `json:"logged,omitempty"`
	Opaque  []analysis.Opaque `json:"opaque,omitempty"`
	Objects []analysis.Object `json:"objects,omitempty"`
}

// lookup is a call of the function lookup, and the possible texts of its arguments.
type lookup struct {
	File                   string         `json:"file"`
	Line                   int            `json:"line"`
	Versions, Kinds, Names analysis.Texts `json:",omitzero"`
}

// analyze finds the facts about the chart of a kind.
func analyze(kind catalog.Kind) (*facts, error) {
	crds, others, err := kind.Chart.CRDFolder()
	if err != nil {
		return nil, err
	}
	f := &facts{CRDs: reduced(crds), CRDFolder: reduced(others)}
	if err := f.readTemplates(kind.Chart); err != nil {
		return nil, err
	}
	rendered, err := renderAll(kind, f.apiVersions())
	if err != nil {
		return nil, err
	}
	f.Objects, f.Hooks = reduced(rendered.Objects), reduced(rendered.Hooks)
	return f, nil
}

// reduced returns objects without the fields that permissions do not depend on, each once.
func reduced(objects []chart.RenderedObject) []object {
	var all []object
	seen := map[string]bool{}
	for _, o := range objects {
		content := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}
		metadata := map[string]any{}
		switch kind := o.GroupVersionKind().GroupKind(); {
		case kind.Kind == "":
			// The API server rejects the object.
			continue
		case kind == definitionKind:
			metadata["name"] = o.GetName()
			for _, field := range definitionFields {
				if value, found, err := unstructured.NestedString(o.Object, field...); err == nil && found {
					_ = unstructured.SetNestedField(content, value, field...)
				}
			}
		case kind == statefulSetKind:
			if policy, _, _ := unstructured.NestedString(o.Object, whenDeleted...); policy != "" {
				_ = unstructured.SetNestedField(content, policy, whenDeleted...)
			}
		case kind.Group == rbacv1.GroupName:
			metadata["name"] = o.GetName()
			for _, field := range []string{"rules", "aggregationRule", "roleRef"} {
				if value, ok := o.Object[field]; ok {
					content[field] = value
				}
			}
		}
		annotations := map[string]any{}
		for _, name := range []string{analysis.HookLogPolicy, api.AnnotationClaims} {
			if value := o.GetAnnotations()[name]; value != "" {
				annotations[name] = value
			}
		}
		if len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
		content["metadata"] = metadata
		one := object{o.Source, content}
		data, err := json.Marshal(one)
		if err != nil || seen[string(data)] {
			continue
		}
		seen[string(data)] = true
		all = append(all, one)
	}
	return all
}

// whenDeleted is the field of a StatefulSet that determines whether its claims are deleted with
// it. An uninstall changes it, and the claims.
var whenDeleted = []string{"spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"}

// definitionFields are the fields of a CRD that name its resource.
var definitionFields = [][]string{
	{"spec", "group"}, {"spec", "scope"}, {"spec", "names", "kind"}, {"spec", "names", "plural"},
}

// restored returns objects in the form of rendered ones.
func restored(objects []object) []chart.RenderedObject {
	all := make([]chart.RenderedObject, len(objects))
	for i, o := range objects {
		all[i] = chart.RenderedObject{Unstructured: &unstructured.Unstructured{Object: o.Content}, Source: o.Source}
	}
	return all
}

// readTemplates adds the facts in the syntax of the templates of a chart and its subcharts.
func (f *facts) readTemplates(loaded *chart.Chart) error {
	defaults, err := loaded.Values()
	if err != nil {
		return err
	}
	var enums leaves
	if err := enums.ofSchema(loaded.Schema(), true); err != nil {
		return err
	}
	enum := func(path []string) ([]any, bool) {
		if leaf := enums.at(path); leaf != nil {
			return leaf.values, true
		}
		return nil, false
	}
	templates := loaded.Templates()
	evaluator := analysis.NewEvaluator(templates, defaults, enum)
	for _, d := range evaluator.Documents() {
		f.Documents = append(f.Documents, document{d.File.Path, d.Logged, d.Opaque, d.Objects()})
	}
	for _, call := range analysis.ReadCalls(templates).Named("lookup", 2) {
		f.Lookups = append(f.Lookups, lookup{
			call.File.Path, call.Line(), evaluator.Texts(call, 0), evaluator.Texts(call, 1), evaluator.Texts(call, 3),
		})
	}
	return nil
}

// key identifies the facts about the chart of a kind.
func key(kind catalog.Kind) (string, error) {
	overrides, err := json.Marshal(kind.Overrides)
	if err != nil {
		return "", fmt.Errorf("overrides: %w", err)
	}
	return "permissions " + values.DigestOf(kind.Chart.FilesDigest(), string(overrides), strconv.FormatBool(kind.IntegerNumbers())), nil
}

// apiVersions returns the API versions in the templates, with and without the kind. A
// chart may render an object only if .Capabilities contains its API version.
func (f *facts) apiVersions() []string {
	var found []string
	for _, d := range f.Documents {
		for _, o := range d.Objects {
			found = append(found, apiVersionsOf(o)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
