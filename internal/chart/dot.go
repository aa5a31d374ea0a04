package chart

import (
	"sync"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// scope holds the dot of the templates of one chart.
type scope struct {
	dot      engine.Values
	basePath string
}

// shownFiles caches .Files of a chart and its subcharts, a type of Helm's engine that
// renders cannot change. The key is the first file of the chart or subchart, which all
// clones share, or nil if it has no files.
type shownFiles struct {
	mu    sync.Mutex
	known map[*engine.File]any
}

// scopeOf returns the dot of the templates of a chart. It contains the dots of subcharts
// by name under Subcharts. It is the same as in Helm's engine (recAllTpls in pkg/engine),
// which does not export it.
func (f *shownFiles) scopeOf(c *engine.Chart, above engine.Values) (engine.Values, error) {
	seen, err := f.of(c)
	if err != nil {
		return nil, err
	}
	below := map[string]any{}
	dot := engine.Values{
		"Chart": struct {
			engine.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        seen,
		"Release":      above["Release"],
		"Capabilities": above["Capabilities"],
		"Values":       engine.Values{},
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

func (f *shownFiles) of(c *engine.Chart) (any, error) {
	var first *engine.File
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
		f.known = map[*engine.File]any{}
	}
	f.known[first] = made
	return made, nil
}

// takeFiles returns .Files of Helm's engine, by a template that captures it. Another type
// would be visible to charts: typeOf and errors of templates name engine.files.
func takeFiles(of []*engine.File) (seen any, err error) {
	bare := &engine.Chart{
		Metadata:  &engine.Metadata{Name: "files"},
		Files:     of,
		Templates: []*engine.File{{Name: "templates/take", Data: []byte("{{ call .Release.take .Files }}")}},
	}
	take := func(files any) string {
		seen = files
		return ""
	}
	_, err = engine.Render(bare, engine.Values{"Release": map[string]any{"take": take}})
	return seen, err
}
