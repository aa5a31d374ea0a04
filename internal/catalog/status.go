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

// readStatus compiles the status fields and parses the entries of observe.
func (k *Kind) readStatus(report func(path string, err error)) {
	var err error
	k.Observes, err = observe(k.Observe)
	report("", err)
	written := maps.Clone(k.Status)
	// The parser of the file reports empty expressions.
	maps.DeleteFunc(written, func(_, expression string) bool { return strings.TrimSpace(expression) == "" })
	fields, mistakes := kindstatus.Compile(written, k.observeNames())
	for _, mistake := range mistakes {
		report("status."+mistake.Field, fmt.Errorf("status.%w", mistake))
	}
	k.Fields = fields
	if k.Chart != nil && fields.UseValues() {
		k.Defaults, err = k.Chart.Values()
		report("", err)
	}
}

// observeNames returns the names of the entries of observe.
func (k *Kind) observeNames() []string {
	names := make([]string, len(k.Observe))
	for i, o := range k.Observe {
		names[i] = o.Name
	}
	return names
}

// Selection selects the observed objects of a custom resource.
type Selection = observed.Selection

// Observe is one entry of observe.
type Observe struct {
	Name  string
	Watch observed.Watch
	// labels are the labels whose values differ between custom resources.
	labels map[string]*Template
}

// observe parses the labels of each entry.
func observe(entries []watches.Observe) ([]Observe, error) {
	var list []Observe
	for i, entry := range entries {
		o := Observe{Name: entry.Name, labels: map[string]*Template{}}
		fixed := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(entry.Selector.MatchLabels)) {
			value := entry.Selector.MatchLabels[key]
			if !watches.IsTemplate(value) {
				fixed[key] = value
				continue
			}
			var err error
			at := fmt.Sprintf("observe[%d].selector.matchLabels: %s", i, key)
			if o.labels[key], err = parseTemplate(at, value, validation.IsValidLabelValue); err != nil {
				return nil, err
			}
		}
		o.Watch = observed.NewWatch(entry.GVK(), fixed, slices.Collect(maps.Keys(o.labels)))
		list = append(list, o)
	}
	return list, nil
}

// limitObserved limits the watches of observe to the fields that expressions read.
func (k *Kind) limitObserved() {
	for i, o := range k.Observes {
		k.Observes[i].Watch = o.Watch.Reading(slices.Concat(
			k.Fields.ObservedPaths(o.Name), k.Outputs.Public.ObservedPaths(o.Name), k.Outputs.Sensitive.ObservedPaths(o.Name)))
	}
}

// Selection returns the selection for a custom resource. It returns an error if the custom
// resource lacks a field that a template reads, or if a result is not a valid label value.
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
func (k *Kind) readHealth(report func(path string, err error)) {
	for i, written := range k.Health {
		if strings.TrimSpace(written.Ready) == "" {
			// The parser of the file reports this.
			continue
		}
		rule, mistakes := health.Compile(written.Ready, written.Failed, written.Message)
		for _, mistake := range mistakes {
			report(fmt.Sprintf("health[%d].%s", i, mistake.Field), fmt.Errorf("health[%d].%w", i, mistake))
		}
		if k.HealthRules == nil {
			k.HealthRules = health.Rules{}
		}
		k.HealthRules[written.GroupKind()] = rule
	}
}
