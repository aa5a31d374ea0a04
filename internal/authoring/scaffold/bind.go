package scaffold

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/watches"
)

// bind returns the watches file with a new or changed entry for the kind.
func (p *Plan) bind(file *watchesFile, index int, a Add, chart string, loaded *chart.Chart, finder *landing.Finder) ([]byte, error) {
	need, err := Allow(catalog.Kind{Watch: watches.Watch{Group: a.Group, Version: a.Version, Kind: a.Kind}, Chart: loaded}, finder)
	if err != nil {
		return nil, err
	}
	if index < 0 {
		return p.bindNew(file, a, chart, need)
	}
	have := file.entries[index]
	var fields entry
	if !sameChart(have.Chart, chart) {
		p.replaceChart(file, index, a, chart)
		fields.set("chart", chart)
	}
	if a.Plural != "" && a.Plural != have.PluralName() {
		p.notef("the plural of %s changes: this is another CustomResourceDefinition, and the custom resources of the previous one are not moved to it", a.Kind)
		fields.set("plural", a.Plural)
	}
	fields.options(a, have)
	if have.Version != a.Version {
		versions, err := p.addVersion(have, a)
		if err != nil {
			return nil, err
		}
		fields = append(fields, versions...)
	}
	allow, err := p.widen(a, have, need, fields)
	if err != nil {
		return nil, err
	}
	return file.change(index, append(fields, allow...))
}

// bindNew returns the watches file with an entry for a new kind.
func (p *Plan) bindNew(file *watchesFile, a Add, chart string, need Need) ([]byte, error) {
	p.Notes = append(p.Notes, need.Notes...)
	written := entry{{"group", a.Group}, {"version", a.Version}, {"kind", a.Kind}, {"chart", chart}}
	if a.Plural != watches.DefaultPlural(a.Kind) {
		written.set("plural", a.Plural)
	}
	written.options(a, watches.Watch{})
	reasons := need.Reasons(watches.Allow{})
	switch {
	case len(reasons) == 0:
	case a.Allow == nil:
		p.refuse(fmt.Sprintf("the chart of %s needs permissions outside the namespace of its releases:\n%s", a.Kind, strings.Join(reasons, "\n")),
			"To allow them in the entry, set --allow. To add the kind without them, set --allow=false", "")
	case *a.Allow:
		p.remarkf("the entry of %s allows objects outside the namespace of its releases:\n%s", a.Kind, strings.Join(reasons, "\n"))
	default:
		p.remarkf("the entry of %s does not allow everything that its chart needs:\n%s", a.Kind, strings.Join(reasons, "\n"))
		need.Allow = watches.Allow{}
	}
	allows, ofOperatorSDK := written.allow(need.Allow), watches.OperatorSDKStyle(file.text, chart)
	if !allows && ofOperatorSDK {
		// In a file of the operator-sdk, an entry without allow would allow
		// everything.
		written = append(written, field{"allow", map[string]any{}})
	}
	if ofOperatorSDK {
		written = append(written, field{"numbers", string(watches.NumbersHelm)})
	}
	return file.add(written)
}

// replaceChart refuses to bind an existing kind to another chart without confirmation.
func (p *Plan) replaceChart(file *watchesFile, index int, a Add, chart string) {
	have := file.entries[index]
	if !a.ReplaceChart {
		p.refuse(fmt.Sprintf("the kind %s already has the chart %s: with %s, all its releases would be upgraded to the other chart", a.Kind, have.Chart, chart),
			"To replace the chart, set --replace-chart. To add another kind, set --kind", "")
		return
	}
	p.remarkf("the chart of %s changes from %s to %s: the operator upgrades all its releases to the new chart", a.Kind, have.Chart, chart)
	used := slices.ContainsFunc(file.entries, func(w watches.Watch) bool {
		return w.GVK() != have.GVK() && sameChart(w.Chart, have.Chart)
	})
	if !used && !filepath.IsAbs(have.Chart) {
		p.remarkf("%s is no longer used: you can delete it", have.Chart)
	}
}

// addVersion returns the keys of an entry that gets another version. The stored version
// does not change, so that the previous CRD can be applied again.
func (p *Plan) addVersion(have watches.Watch, a Add) (entry, error) {
	versions := slices.Clone(have.Versions)
	if len(versions) == 0 {
		versions = []watches.CRDVersion{{Name: have.Version, Storage: true}}
	}
	if !slices.ContainsFunc(versions, func(v watches.CRDVersion) bool { return v.Name == a.Version }) {
		versions = append([]watches.CRDVersion{{Name: a.Version}}, versions...)
	}
	for _, v := range versions {
		if v.Storage {
			p.remarkf("%s is served as %s and %s, and still stored as %s: see the key versions of watches.yaml", a.Kind, a.Version, have.Version, v.Name)
		}
	}
	listed, err := decoded("versions", versions)
	// The version must be in the list when it becomes that of the entry.
	return entry{listed, {"version", a.Version}}, err
}

// widen returns the allow block of an existing entry if it changes.
func (p *Plan) widen(a Add, have watches.Watch, need Need, fields entry) (entry, error) {
	if have.Allow.Everything {
		if !slices.ContainsFunc(fields, func(f field) bool { return !watches.OperatorSDKKey(f.key) }) {
			return nil, nil
		}
		// The entry would no longer be one of the operator-sdk, and allow nothing.
		p.remarkf("the entry of %s has allowed everything, like entries of the operator-sdk; with keys of Chartwright it allows what its block allow lists", a.Kind)
		have.Allow = watches.Allow{}
	} else {
		reasons := need.Reasons(have.Allow)
		if len(reasons) == 0 || a.Allow != nil && !*a.Allow {
			return nil, nil
		}
		if a.Allow == nil {
			p.notef("the chart needs permissions that the entry of %s does not allow:\n%s\nTo allow them, set --allow", a.Kind, strings.Join(reasons, "\n"))
			return nil, nil
		}
		p.remarkf("the entry of %s now also allows:\n%s", a.Kind, strings.Join(reasons, "\n"))
	}
	need.OtherNamespaces = need.OtherNamespaces || have.Allow.OtherNamespaces
	need.ClusterScoped = slices.Concat(have.Allow.ClusterScoped, need.ClusterScoped)
	slices.Sort(need.ClusterScoped)
	need.ClusterScoped = slices.Compact(need.ClusterScoped)
	need.Lookup = cmp.Or(need.Lookup, have.Allow.Lookup)
	// Without changes of the other keys.
	need.LookupInValues, need.TakeOwnership, need.SystemNamespaces = have.Allow.LookupInValues, have.Allow.TakeOwnership, have.Allow.SystemNamespaces
	need.DependsOn = have.Allow.DependsOn
	block, err := decoded("allow", need.Allow)
	return entry{block}, err
}

// options adds the requested keys that differ from the defaults.
func (e *entry) options(a Add, have watches.Watch) {
	e.source(a.Fetched, have)
	e.set("shortNames", a.ShortNames)
	e.set("categories", a.Categories)
	// Before the scope, which needs it.
	e.set("releaseNamespace", a.ReleaseNamespace)
	if a.Scope != string(cmp.Or(have.Scope, watches.ScopeNamespaced)) {
		e.set("scope", a.Scope)
	}
}
