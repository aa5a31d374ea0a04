package watches

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// Parse reads a watches file. The name is only used in messages.
//
// The error, if any, is of type LineErrors and holds every problem of the file.
func Parse(name string, data []byte) ([]Watch, error) {
	p := &parser{file: name, data: data, seen: map[schema.GroupKind]int{}}
	watches := p.parse(data)
	return watches, p.problems.Err()
}

type parser struct {
	file     string
	data     []byte
	problems LineErrors
	// seen is the line of the first entry of each kind.
	seen map[schema.GroupKind]int
	// beside: the file is a kind.yaml. Its entry names no chart.
	beside bool
}

func (p *parser) problemf(line int, format string, args ...any) {
	p.problems = append(p.problems, LineError{File: p.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// checkName reports a value that a validation function rejects. It returns whether the
// value is valid.
func (p *parser) checkName(line int, at, value string, check func(string) error) bool {
	err := check(value)
	if err != nil {
		p.problemf(line, "%s: %q: %v", at, value, err)
	}
	return err == nil
}

func (p *parser) parse(data []byte) []Watch {
	list := p.document(data, "a list of entries with group, version, kind and chart", "put all entries into one list")
	if list == nil {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		p.problemf(list.Line, "expected a list of entries with group, version, kind and chart, found %s", describe(list))
		return nil
	}
	watches := make([]Watch, 0, len(list.Content))
	names := Names{}
	for _, node := range list.Content {
		before := len(p.problems)
		w := p.entry(node)
		p.problems = append(p.problems, names.Add(w)...)
		w.Problems = append(w.Problems, p.problems[before:]...)
		watches = append(watches, w)
	}
	return watches
}

// document returns the content of the only document in the file, or reports why it cannot.
func (p *parser) document(data []byte, expected, advice string) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		p.problemf(0, "the file is empty: expected %s", expected)
		return nil
	case err != nil:
		p.yamlError(err)
		return nil
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.problemf(0, "expected one YAML document, found several: %s", advice)
		return nil
	}
	return doc.Content[0]
}

// yamlError reports a syntax error with its line. The library has the line only in the
// message: "yaml: line 3: did not find expected key".
func (p *parser) yamlError(err error) {
	var line int
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, scanErr := fmt.Sscanf(message, "line %d:", &line); scanErr == nil {
		_, message, _ = strings.Cut(message, ": ")
		// The line counts from 0 in errors of the library's parser, and from 1 in those of
		// its scanner.
		if strings.HasPrefix(message, "did not find expected") {
			line++
		}
	}
	p.problemf(line, "invalid YAML: %s", message)
}

func (p *parser) entry(node *yaml.Node) Watch {
	w := Watch{File: p.file, Line: node.Line, Lines: map[string]int{}}
	if node.Kind != yaml.MappingNode {
		p.problemf(node.Line, "expected an entry with group, version, kind and chart, found %s", describe(node))
		return w
	}
	var written []string
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if slices.Contains(written, key.Value) {
			p.problemf(key.Line, "key %q appears twice in one entry, first on line %d", key.Value, w.Lines[key.Value])
			continue
		}
		w.Lines[key.Value] = key.Line
		written = append(written, key.Value)
		p.field(&w, key, value)
		addLines(w.Lines, key.Value, value, 2)
	}
	w.OperatorSDK = !p.beside && (OperatorSDKStyle(p.data, w.Chart) || w.DryRunOption != "")
	// With keys of its own, an entry allows only what it lists.
	w.Allow.Everything = w.OperatorSDK && !slices.ContainsFunc(written, func(key string) bool { return !OperatorSDKKey(key) })
	p.check(&w)
	return w
}

// field decodes the value of one key of an entry. It converts the value to JSON first,
// because the types of Kubernetes decode JSON.
func (p *parser) field(w *Watch, key, value *yaml.Node) {
	if !slices.Contains(keys, key.Value) {
		if known := similar(key.Value, keys); known != "" {
			p.problemf(key.Line, "unknown key %q: did you mean %s?", key.Value, known)
			return
		}
		p.problemf(key.Line, "unknown key %q: expected one of %s", key.Value, strings.Join(keys, ", "))
		return
	}
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		p.problemf(value.Line, "%s: %v", key.Value, err)
		return
	}
	data, err := json.Marshal(map[string]any{key.Value: decoded})
	if err != nil {
		p.problemf(value.Line, "%s: %v", key.Value, err)
		return
	}
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	next := *w
	if err := strict.Decode(&next); err != nil {
		p.problemf(value.Line, "%s", explain(key.Value, err))
		return
	}
	*w = next
}

// check reports missing, invalid and contradictory values of an entry.
func (p *parser) check(w *Watch) {
	for _, field := range []struct{ key, value string }{{"version", w.Version}, {"kind", w.Kind}, {"chart", w.Chart}} {
		_, written := w.Lines[field.key]
		switch {
		case field.key == "chart" && p.beside:
			if written {
				p.problemf(w.Lines[field.key], "chart: a kind.yaml always belongs to the chart in its folder: remove the key")
			}
		case !written:
			p.problemf(w.Line, "the entry has no %s: add \"%s: …\"", field.key, field.key)
		case field.value == "":
			p.problemf(w.Lines[field.key], "%s is empty", field.key)
		}
	}
	p.checkGVK(w)
	if w.MaxConcurrentReconciles != nil && *w.MaxConcurrentReconciles < 1 {
		p.problemf(w.Lines["maxConcurrentReconciles"], "maxConcurrentReconciles is %d: expected at least 1", *w.MaxConcurrentReconciles)
	}
	if w.MaxHistory != nil && *w.MaxHistory < 1 {
		p.problemf(w.Lines["maxHistory"], "maxHistory is %d: expected at least 1", *w.MaxHistory)
	}
	if w.ReconcilePeriod != nil && w.ReconcilePeriod.Duration < 0 {
		p.problemf(w.Lines["reconcilePeriod"], "reconcilePeriod is %s: expected 0 (never) or more", w.ReconcilePeriod.Duration)
	}
	if w.Timeout != nil && w.Timeout.Duration <= 0 {
		p.problemf(w.Lines["timeout"], "timeout is %s: expected more than 0", w.Timeout.Duration)
	}
	if w.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(w.Selector); err != nil {
			p.problemf(w.Lines["selector"], "selector: %v", err)
		}
	}
	p.checkPolicies(w)
	p.checkRollout(w)
	p.checkFailurePolicy(w)
	p.checkFormerManagers(w)
	p.checkUninstall(w)
	p.checkGuard(w)
	p.checkRBAC(w)
	p.checkValuesFrom(w)
	p.checkDependsOn(w)
	p.checkSubresources(w)
	p.checkStatus(w)
	p.checkObserve(w)
	p.checkOutputs(w)
	p.checkHealth(w)
	p.checkDisplay(w)
	p.checkVersions(w)
	p.checkSource(w)
	if w.Kind == "" {
		return
	}
	gk := w.GVK().GroupKind()
	if first, twice := p.seen[gk]; twice {
		p.problemf(w.Line, "%s has two entries, the first on line %d: expected one entry per kind", gk, first)
		return
	}
	p.seen[gk] = w.Line
}

// checkGVK checks the names that identify the kind.
func (p *parser) checkGVK(w *Watch) {
	for _, name := range []struct {
		key, value string
		check      func(string) error
	}{{"group", w.Group, CheckGroup}, {"version", w.Version, CheckVersion}, {"kind", w.Kind, CheckKind}} {
		if name.value != "" {
			p.checkName(w.Lines[name.key], name.key, name.value, name.check)
		}
	}
}

// keys are the keys of an entry, in the order of the fields of Watch.
var keys = api.JSONNames(reflect.TypeFor[Watch]())

// addLines adds the lines of the keys and items below a node, levels deep. The limit
// bounds the work for nested aliases.
func addLines(lines map[string]int, path string, node *yaml.Node, levels int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if levels == 0 {
		return
	}
	for i, child := range node.Content {
		at, value := fmt.Sprintf("%s[%d]", path, i), child
		if node.Kind == yaml.MappingNode {
			if i%2 == 1 {
				continue
			}
			at, value = path+"."+child.Value, node.Content[i+1]
		}
		lines[at] = child.Line
		addLines(lines, at, value, levels-1)
	}
}

// operatorSDKKeys are the keys that the operator-sdk's Helm operator and
// helm-operator-plugins accept.
var operatorSDKKeys = []string{
	"group", "version", "kind", "chart",
	"watchDependentResources", "overrideValues", "selector", "reconcilePeriod", "dryRunOption", "maxConcurrentReconciles",
}

// OperatorSDKKey reports whether the operator-sdk's Helm operator accepts a key of an
// entry.
func OperatorSDKKey(key string) bool { return slices.Contains(operatorSDKKeys, key) }

// scaffoldMarker is the comment in a watches file of the operator-sdk at which it adds
// entries.
var scaffoldMarker = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*\+kubebuilder:scaffold:watch[ \t\r]*$`)

// helmCharts is the folder of charts in a project of the operator-sdk.
const helmCharts = "helm-charts"

// OperatorSDKStyle reports whether an entry for the chart was written for the
// operator-sdk's Helm operator, which allows everything. The evidence is the scaffolding
// comment in the file, or the operator-sdk's folder of charts. An entry without
// Chartwright's own keys is not sufficient evidence; the key dryRunOption is.
func OperatorSDKStyle(file []byte, chart string) bool {
	return scaffoldMarker.Match(file) || slices.Contains(strings.Split(filepath.ToSlash(chart), "/"), helmCharts)
}

// ParseKind reads a kind.yaml: one entry of a watches file, without the list and without a
// chart, because the chart is in the same folder. The name is only used in messages.
//
// The error, if any, is of type LineErrors and holds every problem of the file.
func ParseKind(name string, data []byte) (Watch, error) {
	p := &parser{file: name, seen: map[schema.GroupKind]int{}, beside: true}
	const expected = "one entry with group, version and kind"
	var w Watch
	switch node := p.document(data, expected, "put each kind into its own folder"); {
	case node == nil:
	case node.Kind != yaml.MappingNode:
		p.problemf(node.Line, "expected %s, found %s", expected, describe(node))
	default:
		w = p.entry(node)
	}
	return w, p.problems.Err()
}
