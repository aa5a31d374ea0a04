package catalog

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// Outputs are the compiled outputs of a kind.
type Outputs struct {
	// Public outputs are published in the status, and Sensitive ones in a Secret only.
	Public, Sensitive kindstatus.Fields
	// Objects are the kinds of the release's objects that the expressions read, by the names
	// in the expressions. A kind without a group matches the kinds of all groups.
	Objects map[string]schema.GroupKind
}

// Exist reports whether the kind has outputs.
func (o Outputs) Exist() bool { return len(o.Public)+len(o.Sensitive) > 0 }

// readOutputs compiles the outputs, and decides which are sensitive.
func (k *Kind) readOutputs(report func(path string, err error)) {
	written, at, marked := map[string]string{}, map[string]string{}, map[string]bool{}
	for i, output := range k.Watch.Outputs {
		// The parser of the file reports missing names and empty expressions.
		if output.Name != "" && strings.TrimSpace(output.Value) != "" {
			written[output.Name], at[output.Name] = output.Value, fmt.Sprintf("outputs[%d]", i)
			marked[output.Name] = output.Sensitive
		}
	}
	fields, mistakes := kindstatus.CompileOutputs(written, k.observeNames())
	for _, mistake := range mistakes {
		report(at[mistake.Field]+".value", fmt.Errorf("%s.value: %s", at[mistake.Field], mistake.Message))
	}
	k.Outputs.Sensitive, k.Outputs.Public = fields.Split(func(name string) bool {
		return marked[name] || fields.ReadsObjects(name, isSecret) || k.readsSecretValue(fields, name)
	})
	k.Outputs.Objects = map[string]schema.GroupKind{}
	for _, name := range fields.Objects() {
		k.Outputs.Objects[name] = schema.ParseGroupKind(name)
	}
	if k.Chart != nil && k.Defaults == nil && fields.UseValues() {
		var err error
		k.Defaults, err = k.Chart.Values()
		report("", err)
	}
}

// isSecret reports whether a kind of objects is Secret, in any API group.
func isSecret(name string) bool {
	return schema.ParseGroupKind(name).Kind == string(watches.SourceSecret)
}

// readsSecretValue reports whether an output may read a value that comes from a Secret.
func (k *Kind) readsSecretValue(fields kindstatus.Fields, name string) bool {
	return slices.ContainsFunc(k.ValuesFrom, func(from watches.ValuesFrom) bool {
		return from.Kind == watches.SourceSecret && fields.ReadsValue(name, targetOf(from))
	})
}

// targetOf returns the path of the value that a source sets, up to the first list. It is
// empty if the source can set any value.
func targetOf(from watches.ValuesFrom) (path []string) {
	if from.TargetPath == "" {
		return nil
	}
	set := map[string]any{}
	if chart.SetValue(set, from.TargetPath, "") != nil {
		return nil
	}
	for {
		var next any
		for name, value := range set {
			path, next = append(path, name), value
		}
		inner, isMap := next.(map[string]any)
		if !isMap {
			return path
		}
		set = inner
	}
}
