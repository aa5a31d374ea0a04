package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/inputs/observed"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/watches"
)

// readStatus compiles the kind's own status fields and parses what they observe.
func (k *Kind) readStatus() (problems watches.LineErrors) {
	wrong := func(err error) {
		problems = append(problems, watches.LineError{File: k.File, Line: k.Line, Message: err.Error()})
	}
	var err error
	if k.Observes, err = observe(k.Observe); err != nil {
		wrong(err)
	}
	names := make([]string, len(k.Observe))
	for i, o := range k.Observe {
		names[i] = o.Name
	}
	written := maps.Clone(k.Status)
	// Of those that are empty the file's parser has told.
	maps.DeleteFunc(written, func(_, expression string) bool { return strings.TrimSpace(expression) == "" })
	fields, mistakes := kindstatus.Compile(written, names)
	for _, mistake := range mistakes {
		problems = append(problems, k.StatusError(mistake.Field, mistake.Message))
	}
	k.Fields = fields
	if k.Chart != nil && fields.UseValues() {
		if k.Defaults, err = k.Chart.Values(); err != nil {
			wrong(err)
		}
	}
	return problems
}

// Selection is what one custom resource sees of an entry of observe.
type Selection = observed.Selection

// Observe is one entry of observe.
type Observe struct {
	Name  string
	Watch observed.Watch
	// labels are those that differ from one custom resource to another.
	labels map[string]*NameTemplate
}

// observe parses the labels of each entry.
func observe(entries []watches.Observe) ([]Observe, error) {
	var list []Observe
	for i, entry := range entries {
		o := Observe{Name: entry.Name, labels: map[string]*NameTemplate{}}
		fixed := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(entry.Selector.MatchLabels)) {
			value := entry.Selector.MatchLabels[key]
			if !watches.IsTemplate(value) {
				fixed[key] = value
				continue
			}
			var err error
			at := fmt.Sprintf("observe[%d].selector.matchLabels: %s", i, key)
			if o.labels[key], err = parse(at, value, validation.IsValidLabelValue); err != nil {
				return nil, err
			}
		}
		o.Watch = observed.NewWatch(entry.GVK(), fixed, slices.Collect(maps.Keys(o.labels)))
		list = append(list, o)
	}
	return list, nil
}

// Selection returns what a custom resource sees of the entry. It is an error if
// the resource lacks what a label's template asks for, or the result is no
// label's value.
func (o Observe) Selection(cr map[string]any, release types.NamespacedName) (Selection, error) {
	data := maps.Clone(cr)
	data["release"] = map[string]any{"name": release.Name, "namespace": release.Namespace}
	values := make(map[string]string, len(o.labels))
	for key, label := range o.labels {
		value, err := label.For(data)
		if err != nil {
			return Selection{}, err
		}
		values[key] = value
	}
	return Selection{Watch: o.Watch, Name: o.Name, Namespace: release.Namespace, Labels: values}, nil
}

// readHealth compiles the health rules.
func (k *Kind) readHealth() (problems watches.LineErrors) {
	for i, written := range k.Health {
		if strings.TrimSpace(written.Ready) == "" {
			// The parser of the file reports this.
			continue
		}
		rule, mistakes := health.Compile(written.Ready, written.Failed, written.Message)
		for _, mistake := range mistakes {
			problems = append(problems, k.HealthError(i, mistake.Field, mistake.Message))
		}
		if k.HealthRules == nil {
			k.HealthRules = health.Rules{}
		}
		k.HealthRules[written.GroupKind()] = rule
	}
	return problems
}
