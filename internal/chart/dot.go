package chart

import (
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// scope is what the templates of one chart see.
type scope struct {
	dot      chartutil.Values
	basePath string
}

// shownFiles are what templates see as .Files: of a type that is the engine's own,
// and which a render cannot change. There is one for each chart and subchart,
// known by the first of its files, which every clone of the chart shares, or by
// none.
type shownFiles struct {
	mu    sync.Mutex
	known map[*helmchart.File]any
}

// scopeOf returns what the templates of a chart see as their dot; those of its
// subcharts are in it, by their names, under Subcharts. It is what Helm's engine
// makes of them (recAllTpls in pkg/engine), which has no way of giving it away.
func (f *shownFiles) scopeOf(c *helmchart.Chart, above chartutil.Values) (chartutil.Values, error) {
	seen, err := f.of(c)
	if err != nil {
		return nil, err
	}
	below := map[string]any{}
	dot := chartutil.Values{
		"Chart": struct {
			helmchart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        seen,
		"Release":      above["Release"],
		"Capabilities": above["Capabilities"],
		"Values":       chartutil.Values{},
		"Subcharts":    below,
	}
	if c.IsRoot() {
		dot["Values"] = above["Values"]
	} else if own, err := above.Table("Values." + c.Name()); err == nil {
		dot["Values"] = own
	}
	for _, child := range c.Dependencies() {
		inner, err := f.scopeOf(child, dot)
		if err != nil {
			return nil, err
		}
		below[child.Name()] = map[string]any(inner)
	}
	return dot, nil
}

func (f *shownFiles) of(c *helmchart.Chart) (any, error) {
	var first *helmchart.File
	if len(c.Files) > 0 {
		first = c.Files[0]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.known[first]; ok {
		return known, nil
	}
	made, err := takeFiles(c.Files)
	if err != nil {
		return nil, err
	}
	if f.known == nil {
		f.known = map[*helmchart.File]any{}
	}
	f.known[first] = made
	return made, nil
}

// takeFiles has Helm's engine show the files to a template that captures them. A type
// of our own would be visible: typeOf and errors of templates name engine.files.
func takeFiles(of []*helmchart.File) (seen any, err error) {
	bare := &helmchart.Chart{
		Metadata:  &helmchart.Metadata{Name: "files"},
		Files:     of,
		Templates: []*helmchart.File{{Name: "templates/take", Data: []byte("{{ call .Release.take .Files }}")}},
	}
	take := func(files any) string {
		seen = files
		return ""
	}
	_, err = engine.Render(bare, chartutil.Values{"Release": map[string]any{"take": take}})
	return seen, err
}
