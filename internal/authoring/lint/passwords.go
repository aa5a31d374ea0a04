package lint

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/watches"
)

// Recipe describes what the watches entry of a kind needs if its chart generates
// passwords during the install and rejects every upgrade that does not set them.
type Recipe struct {
	// Sources are the missing items of valuesFrom.
	Sources []watches.ValuesFrom
	// Unknown lists the paths of values that the chart requires and that no Secret
	// of the release contains.
	Unknown []string
	// at is the location where the chart requires the first value.
	at location
}

// Needed reports whether the entry is incomplete.
func (r Recipe) Needed() bool { return len(r.Sources)+len(r.Unknown) > 0 }

// YAML returns the key valuesFrom with the items, on one line.
func (r Recipe) YAML() string {
	items := make([]string, len(r.Sources))
	for i, s := range r.Sources {
		items[i] = fmt.Sprintf("{kind: %s, name: %q, key: %q, targetPath: %q, optional: %t}", s.Kind, s.Name, s.Key, s.TargetPath, s.Optional)
	}
	return "valuesFrom: [" + strings.Join(items, ", ") + "]"
}

// String describes the problem and what to add to the entry.
func (r Recipe) String() string {
	text := "the chart rejects an upgrade without the passwords that the release has generated"
	if len(r.Sources) > 0 {
		text += "; add to the entry in the watches file: " + r.YAML()
	}
	if len(r.Unknown) > 0 {
		text += "; no Secret of the release contains " + strings.Join(r.Unknown, ", ") + ": require it in the spec"
	}
	return text
}

// passwords applies the rule on charts that require their generated passwords.
func (c *check) passwords() error {
	recipe, err := GeneratedPasswords(c.Kind)
	if err == nil && recipe.Needed() {
		c.findf(rulePasswords, recipe.at, "%s", recipe)
	}
	return err
}

// requirement is a value that a chart requires in an upgrade.
type requirement struct {
	// path is the path of the value, chart the name of its chart or subchart.
	path, chart string
	at          location
	// kept is set if the chart itself reads the value back from the cluster.
	kept bool
}

// GeneratedPasswords returns what the entry of a kind needs so that its chart can be
// upgraded. It renders the chart only if a template handles passwords like
// Bitnami's library chart. It finds each Secret by its content: it sets the value
// to a probe, and searches for the probe in the rendered Secrets.
func GeneratedPasswords(kind catalog.Kind) (Recipe, error) {
	notes, err := kind.Chart.Notes()
	if err != nil {
		return Recipe{}, err
	}
	wanted := requiredPasswords(kind.Chart.Name(), slices.Concat(notes, kind.Chart.Templates()))
	if len(wanted) == 0 {
		return Recipe{}, nil
	}
	p := passwords{kind: kind}
	if !p.base() {
		// The rules on rendering report why.
		return Recipe{}, nil
	}
	given := withSources(nil, slices.DeleteFunc(slices.Clone(kind.ValuesFrom), func(s watches.ValuesFrom) bool { return s.TargetPath == "" }))
	refused := p.upgrade(given)
	if refused == nil {
		return Recipe{}, nil
	}
	recipe := p.recipe(wanted, given)
	if len(recipe.Unknown) > 0 && !strings.Contains(refused.Error(), "PASSWORDS ERROR") {
		return Recipe{}, nil // the upgrade fails for another reason
	}
	return recipe, nil
}

// passwords renders a chart like the operator.
type passwords struct {
	kind catalog.Kind
	// values are values with which the chart renders.
	values map[string]any
}

// recipe finds the smallest set of sources with which an upgrade succeeds. If no set
// suffices, it lists the values that the chart requires.
func (p *passwords) recipe(wanted []requirement, given map[string]any) Recipe {
	recipe := Recipe{at: wanted[0].at}
	// Values that the chart reads back itself come last: most need no source.
	for _, kept := range []bool{false, true} {
		for _, value := range wanted {
			set, _, _ := unstructured.NestedFieldNoCopy(given, strings.Split(value.path, ".")...)
			if value.kept != kept || set != nil {
				continue
			}
			if source, found := p.source(value); found {
				recipe.Sources = append(recipe.Sources, source)
			} else if !kept {
				recipe.Unknown = append(recipe.Unknown, value.path)
			}
		}
		if p.upgrade(withSources(given, recipe.Sources)) == nil {
			recipe.Unknown = nil
			for _, source := range slices.Backward(recipe.Sources) {
				fewer := slices.DeleteFunc(slices.Clone(recipe.Sources), func(s watches.ValuesFrom) bool { return s == source })
				if p.upgrade(withSources(given, fewer)) == nil {
					recipe.Sources = fewer
				}
			}
			return recipe
		}
	}
	if len(recipe.Unknown) == 0 {
		recipe.Unknown = []string{wanted[0].path}
	}
	return recipe
}

// withSources returns a copy of values, with the probe at the target path of each
// source.
func withSources(given map[string]any, sources []watches.ValuesFrom) map[string]any {
	all := values.Normalize(given)
	for _, source := range sources {
		_ = unstructured.SetNestedField(all, probe, strings.Split(source.TargetPath, ".")...)
	}
	return all
}

// probe is a value that no chart contains.
const probe = "chartwright-probe-7Q4"

// base finds values with which the chart renders, its defaults or an example of the
// chart author, and reports whether there are any.
func (p *passwords) base() bool {
	examples, err := p.kind.Chart.Examples()
	if err != nil {
		return false
	}
	for _, name := range append([]string{""}, slices.Sorted(maps.Keys(examples))...) {
		p.values = values.Merge(values.Normalize(examples[name]), p.kind.Overrides)
		if _, err := p.render(first.name, nil, nil); err == nil {
			return true
		}
	}
	return false
}

// render renders the chart with additional values: an install or, if installed
// objects are given, an upgrade.
func (p *passwords) render(release string, more map[string]any, installed []chart.RenderedObject) (*chart.Rendered, error) {
	offline := chart.Offline{
		Release: release, Namespace: first.namespace, Unchecked: true, APIVersions: p.kind.Chart.Features.APIs, Numbers: p.kind.TemplateNumbers(),
		Values: values.Merge(runtime.DeepCopyJSON(p.values), runtime.DeepCopyJSON(more)),
	}
	if installed != nil {
		offline.Upgrade = true
		offline.Lookup = lookupIn(installed)
	}
	return p.kind.Chart.Render(offline)
}

// upgrade returns the error of an upgrade with additional values.
func (p *passwords) upgrade(more map[string]any) error {
	install, err := p.render(first.name, nil, nil)
	if err != nil {
		return err
	}
	_, err = p.render(first.name, more, slices.Concat(install.Objects, install.Hooks))
	return err
}

// lookupIn implements lookup with rendered objects.
func lookupIn(objects []chart.RenderedObject) func(apiVersion, kind, namespace, name string) (map[string]any, error) {
	return func(apiVersion, kind, _, name string) (map[string]any, error) {
		for _, object := range objects {
			if object.GetAPIVersion() == apiVersion && object.GetKind() == kind && object.GetName() == name {
				return withData(object.Unstructured).Object, nil
			}
		}
		return map[string]any{}, nil
	}
}

// withData returns an object as the API server returns it: a Secret with data
// instead of stringData.
func withData(object *unstructured.Unstructured) *unstructured.Unstructured {
	texts, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	if object.GetKind() != "Secret" || len(texts) == 0 {
		return object
	}
	live := object.DeepCopy()
	for key, text := range texts {
		_ = unstructured.SetNestedField(live.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key)
	}
	return live
}

// source finds the Secret of the release that contains a value.
func (p *passwords) source(value requirement) (watches.ValuesFrom, bool) {
	name, key := p.holder(value, first.name)
	if name == "" {
		return watches.ValuesFrom{}, false
	}
	template := strings.ReplaceAll(name, first.name, resourceName)
	// Most charts use other object names if the name of the release contains that
	// of the chart.
	if long := first.name + "-" + value.chart; value.chart != "" {
		if other, _ := p.holder(value, long); other != "" {
			if inner := strings.ReplaceAll(other, long, resourceName); inner != template {
				template = fmt.Sprintf("{{ if contains %q .metadata.name }}%s{{ else }}%s{{ end }}", value.chart, inner, template)
			}
		}
	}
	return watches.ValuesFrom{Kind: watches.SourceSecret, Name: template, Key: key, TargetPath: value.path, Optional: true}, true
}

// resourceName is the name of the custom resource, in templates of a watches entry.
// The release has the same name.
const resourceName = "{{ .metadata.name }}"

// holder returns the name and the key of the Secret that contains a value.
func (p *passwords) holder(value requirement, release string) (name, key string) {
	rendered, err := p.render(release, withSources(nil, []watches.ValuesFrom{{TargetPath: value.path}}), nil)
	if err != nil {
		return "", ""
	}
	for _, object := range slices.Concat(rendered.Objects, rendered.Hooks) {
		if object.GetKind() != "Secret" {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(withData(object.Unstructured).Object, "data")
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if text, err := base64.StdEncoding.DecodeString(data[key]); err == nil && string(text) == probe {
				return object.GetName(), key
			}
		}
	}
	return "", ""
}

// requiredPasswords finds the values that templates require in the way of Bitnami's
// library chart: in the dict of common.validations.values.single.empty, and in that
// of common.secrets.passwords.manage.
func requiredPasswords(chartName string, files []analysis.File) []requirement {
	var found []requirement
	seen := map[string]bool{}
	add := func(file analysis.File, node parse.Node, key string, kept bool) {
		text, _ := analysis.Literal(node)
		if text == "" {
			return
		}
		value := requirement{path: text, chart: chartName, at: location{file.Path, file.Line(node.Position())}, kept: kept}
		if subcharts := file.Subcharts(); len(subcharts) > 0 {
			value.chart = subcharts[len(subcharts)-1]
			value.path = strings.Join(append(subcharts, text), ".")
		}
		if !seen[key+value.path] {
			seen[key+value.path] = true
			found = append(found, value)
		}
	}
	for _, file := range files {
		file.Walk(func(node parse.Node) bool {
			call, ok := node.(*parse.CommandNode)
			if !ok || analysis.Function(call.Args[0]) != "dict" {
				return true
			}
			for i := 1; i+1 < len(call.Args); i += 2 {
				switch name, _ := analysis.Literal(call.Args[i]); name {
				case "valueKey":
					add(file, call.Args[i+1], "required ", false)
				case "providedValues":
					for _, item := range listed(call.Args[i+1]) {
						add(file, item, "kept ", true)
					}
				}
			}
			return true
		})
	}
	return found
}

// listed returns the arguments of an expression like (list "a" "b").
func listed(node parse.Node) []parse.Node {
	pipe, ok := node.(*parse.PipeNode)
	if !ok || len(pipe.Cmds) != 1 || analysis.Function(pipe.Cmds[0].Args[0]) != "list" {
		return nil
	}
	return pipe.Cmds[0].Args[1:]
}
