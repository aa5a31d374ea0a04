package scaffold

import (
	"cmp"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/watches"
)

// bind returns the watches file with a new or changed entry for the kind.
func (p *Plan) bind(file *watchesFile, index int, a Add, chart string, loaded *chart.Chart, finder *landing.Finder) ([]byte, error) {
	allow, notes, err := Allow(catalog.Kind{Watch: watches.Watch{Group: a.Group, Version: a.Version, Kind: a.Kind}, Chart: loaded}, finder)
	if err != nil {
		return nil, err
	}
	if index < 0 {
		p.Notes = append(p.Notes, notes...)
		written := entry{{"group", a.Group}, {"version", a.Version}, {"kind", a.Kind}, {"chart", chart}}
		if a.Plural != crd.DefaultPlural(a.Kind) {
			written.set("plural", a.Plural)
		}
		written.options(a, watches.Watch{})
		if !written.allow(allow) && watches.OperatorSDKStyle(file.text, chart) {
			// In a file of the operator-sdk, an entry without allow would allow
			// everything.
			written = append(written, field{"allow", map[string]any{}})
		}
		return file.add(written)
	}
	have := file.entries[index]
	fields := entry{{"version", a.Version}, {"chart", chart}}
	if have.Plural != "" || a.Plural != crd.DefaultPlural(a.Kind) {
		fields.set("plural", a.Plural)
	}
	fields.options(a, have)
	if have.Version != a.Version {
		p.notef("the version of %s changes to %s: custom resources are stored as %s, so the entry must list that version in versions", a.Kind, a.Version, have.Version)
	}
	if missing := MissingAllow(have.Allow, allow); len(missing) > 0 {
		p.notef("the chart renders objects that the entry of %s does not allow: if they are intended, add allow: {%s}", a.Kind, strings.Join(missing, ", "))
	}
	return file.change(index, fields)
}

// options adds the requested keys that differ from the defaults.
func (e *entry) options(a Add, have watches.Watch) {
	e.set("shortNames", a.ShortNames)
	e.set("categories", a.Categories)
	// Before the scope, which needs it.
	e.set("releaseNamespace", a.ReleaseNamespace)
	if a.Scope != string(cmp.Or(have.Scope, watches.ScopeNamespaced)) {
		e.set("scope", a.Scope)
	}
}

