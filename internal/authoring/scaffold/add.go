package scaffold

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

// Add describes a kind to add or to update. If the kind exists, empty fields are not
// changed.
type Add struct {
	// Chart is the folder or .tgz of the chart. Alternatively, New is the name of a new
	// chart, or Fetched a chart from a registry, a repository or a URL.
	Chart, New string
	Fetched    *Fetched

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
	plan := newPlan()
	return plan, p.add(plan, a)
}

// add adds the files of a kind to a plan, which can contain the files of the project.
func (p Project) add(plan *Plan, a Add) error {
	file, err := p.watchesFile(plan)
	if err != nil {
		return err
	}
	name, err := p.nameIn(plan)
	if err != nil {
		return err
	}
	source, err := p.source(a, file)
	if err != nil {
		return err
	}
	domain, err := p.domain(plan, file.text)
	if err != nil {
		return err
	}
	if err := a.complete(file, domain, source.name); err != nil {
		return err
	}
	index := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind})
	loaded, err := p.importChart(plan, a, source, file, index)
	if err != nil {
		return err
	}
	if file, err = file.forget(index, a, source); err != nil {
		return err
	}
	text, err := plan.bind(file, index, a, source.entry, loaded, p.Finder)
	if err != nil {
		return err
	}
	if err := plan.write(p.Watches, text); err != nil {
		return err
	}
	if file, err = readWatches(p.Watches, text); err != nil {
		return err
	}
	plan.Entry = file.textOf(a.Kind, a.Group)
	kinds, err := p.kinds(text, source.entry, loaded)
	if err != nil {
		return err
	}
	if len(loaded.Templates()) == 0 {
		plan.remarkf("the chart of %s contains no templates: its releases have no objects", a.Kind)
	}
	plan.kinds = kinds
	added := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.Kind == a.Kind && k.Group == a.Group })
	if added >= 0 {
		plan.Resource = crd.Name(kinds[added])
		if err := plan.notePasswords(kinds[added]); err != nil {
			return err
		}
	}
	return p.generate(plan, name, kinds)
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
