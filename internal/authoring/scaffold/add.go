package scaffold

import (
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

// Add describes a kind to add or to update. If the kind exists, empty fields are not
// changed.
type Add struct {
	// Chart is the folder or .tgz of the chart. Alternatively, New is the name of a new
	// chart.
	Chart, New string

	Group, Version, Kind, Plural string
	ShortNames, Categories       []string
	// Scope is Cluster or Namespaced. The scope Cluster needs ReleaseNamespace.
	Scope, ReleaseNamespace string

	// ReplaceChart allows to bind an existing kind to another chart.
	ReplaceChart bool
	// Force allows to overwrite files of the copy of a chart that the user has edited.
	Force bool
	// Allow is whether the entry allows what the chart needs outside the namespace of its
	// releases. nil means that the plan refuses such a new kind.
	Allow *bool
}

// Add plans the files of a kind. It is idempotent.
func (p Project) Add(a Add) (*Plan, error) {
	text, err := readFile(p.Watches)
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		return nil, p.missing()
	}
	file, err := readWatches(p.Watches, text)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	source, err := p.source(a, file)
	if err != nil {
		return nil, err
	}
	if err := a.complete(file, source.name); err != nil {
		return nil, err
	}
	index := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind})
	loaded, err := p.importChart(plan, a, source, file, index)
	if err != nil {
		return nil, err
	}
	if text, err = plan.bind(file, index, a, source.entry, loaded, p.Finder); err != nil {
		return nil, err
	}
	if err := plan.write(p.Watches, text); err != nil {
		return nil, err
	}
	if file, err = readWatches(p.Watches, text); err != nil {
		return nil, err
	}
	plan.Entry = file.textOf(a.Kind, a.Group)
	kinds, err := catalog.FromText(p.Watches, text, func(path string) (*chart.Chart, error) {
		if path == source.entry {
			return loaded, nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(p.Watches), path)
		}
		return catalog.OpenChart(path)
	})
	if err != nil {
		return nil, err
	}
	if len(loaded.Templates()) == 0 {
		plan.remarkf("the chart of %s contains no templates: its releases have no objects", a.Kind)
	}
	added := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.Kind == a.Kind && k.Group == a.Group })
	if added >= 0 {
		plan.Resource = crd.Name(kinds[added])
		if err := plan.notePasswords(kinds[added]); err != nil {
			return nil, err
		}
	}
	return plan, p.generate(plan, name, kinds)
}

// notePasswords adds a note with the valuesFrom that the entry needs if the chart rejects
// upgrades without the passwords that it has generated.
func (p *Plan) notePasswords(added catalog.Kind) error {
	recipe, err := lint.GeneratedPasswords(added)
	if err == nil && recipe.Needed() {
		p.notef("%s: %s", added.Kind, recipe)
	}
	return err
}
