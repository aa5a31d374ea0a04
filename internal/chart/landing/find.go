package landing

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// find returns where the numbers, maps and lists in the default values of a chart land. It
// renders the chart with its defaults, with its examples, and with all booleans true, and
// ignores values with which it cannot be rendered.
func find(c *chart.Chart) (stored, error) {
	defaults, err := c.Values()
	if err != nil {
		return nil, err
	}
	examples, err := c.Examples()
	if err != nil {
		return nil, err
	}
	survey, err := c.Survey(chart.Offline{Release: "landing-probe-release", Namespace: "landing-probe-namespace", APIVersions: c.Features.APIs})
	if err != nil {
		return nil, err
	}
	bases := []map[string]any{{}, switchedOn(defaults)}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		bases = append(bases, examples[name])
	}
	taken := map[int64]bool{}
	var finders []*finder
	for _, vals := range bases {
		base, found, err := survey.Base(values.Merge(map[string]any{}, vals))
		if err != nil && !errors.Is(err, chart.ErrRender) && !errors.Is(err, chart.ErrInvalidValues) {
			return nil, err
		}
		if base.Traced() {
			finders = append(finders, &finder{base: base, values: vals})
		}
		for _, o := range slices.Concat(found.Objects, found.Hooks) {
			eachNumber(o.Object, func(n int64) { taken[n] = true })
		}
	}
	s := newSearch(defaults, taken)
	for _, f := range finders {
		if err := f.find(s); err != nil {
			return nil, err
		}
	}
	return s.landings(c.Templates()), nil
}

// finder finds landings with variants of one render.
type finder struct {
	base   *chart.Base
	values map[string]any
	// renders counts the renders of templates.
	renders int
}

// maxRenders limits the number of renders of templates that fail with many markers.
const maxRenders = 200

// find searches the markers, and then the numbers that must not be a text.
func (f *finder) find(s *search) error {
	if err := f.render(s.markers, nil, (*marker).value, s.objects, nil); err != nil {
		return err
	}
	var landed []*marker
	for _, m := range s.markers {
		if m.kind == aNumber && len(m.found) > 0 && !m.elsewhere {
			landed = append(landed, m)
		}
	}
	text := func(m *marker) any { return m.word() }
	return f.render(landed, nil, text, s.refusals, func(m *marker) { m.refused = true })
}

// render renders templates with the values of markers, and calls do with the objects of
// each. It repeats a template that fails with each half of the markers, and calls failing for
// a single marker that makes a template fail.
func (f *finder) render(markers []*marker, only sets.Set[string], value func(*marker) any, do func(chart.Found), failing func(*marker)) error {
	if len(markers) == 0 {
		return nil
	}
	failed := sets.New[string]()
	err := f.base.ChangeEach(with(f.values, markers, value), only, func(template string, found chart.Found, err error) {
		f.renders++
		if err != nil {
			failed.Insert(template)
			return
		}
		do(found)
	})
	switch {
	case errors.Is(err, chart.ErrRender), errors.Is(err, chart.ErrInvalidValues):
		// The values are refused, regardless of a template.
		failed = only
	case err != nil:
		return err
	case failed.Len() == 0:
		return nil
	}
	if f.renders > maxRenders {
		return nil
	}
	if len(markers) == 1 {
		if failing != nil {
			failing(markers[0])
		}
		return nil
	}
	half := len(markers) / 2
	return errors.Join(f.render(markers[:half], failed, value, do, failing), f.render(markers[half:], failed, value, do, failing))
}

// newSearch returns a search with a marker for each number, map and list.
func newSearch(defaults map[string]any, taken map[int64]bool) *search {
	s := &search{byNumber: map[int64]*marker{}}
	eachNumber(defaults, func(n int64) { taken[n] = true })
	// The number is small, because a template may repeat something as often.
	next := int64(211)
	var collect func(path []string, value any)
	add := func(path []string, kind markerKind) {
		for taken[next] {
			next++
		}
		m := &marker{path: slices.Clone(path), kind: kind, number: next}
		next++
		s.markers = append(s.markers, m)
		s.byNumber[m.number] = m
	}
	collect = func(path []string, value any) {
		switch v := value.(type) {
		case map[string]any:
			if len(path) > 0 {
				add(path, aMap)
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				collect(append(slices.Clip(path), key), v[key])
			}
		case []any:
			add(path, aList)
		case int64:
			add(path, aNumber)
		}
	}
	collect(nil, values.Normalize(defaults))
	return s
}

func eachNumber(value any, do func(int64)) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			eachNumber(inner, do)
		}
	case []any:
		for _, inner := range v {
			eachNumber(inner, do)
		}
	case int64:
		do(v)
	case float64:
		do(int64(v))
	case string:
		for _, digits := range numbers.FindAllString(v, -1) {
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
				do(n)
			}
		}
	}
}

// numbers matches numbers that are words in a text.
var numbers = regexp.MustCompile(`\b\d{1,5}\b`)

// switchedOn returns values that set all booleans to true.
func switchedOn(defaults map[string]any) map[string]any {
	on := map[string]any{}
	for key, value := range defaults {
		switch v := value.(type) {
		case bool:
			on[key] = true
		case map[string]any:
			if inner := switchedOn(v); len(inner) > 0 {
				on[key] = inner
			}
		}
	}
	return on
}

// with returns values with other values at the paths of markers.
func with(base map[string]any, markers []*marker, value func(*marker) any) map[string]any {
	vals := values.Merge(map[string]any{}, base)
	for _, m := range markers {
		vals = values.Merge(vals, values.Nest(m.path, value(m)))
	}
	return vals
}

// landings returns the fields of the markers that were found.
func (s *search) landings(templates []analysis.File) stored {
	all := stored{}
	for _, m := range s.markers {
		if f, ok := m.landing(); ok && (m.kind != aNumber || m.refused && !comparedToWord(templates, m.path)) {
			all[Key(m.path)] = storedLanding{f, m.templated}
		}
	}
	return all
}

// comparing matches calls of functions that compare a value, with a word as argument.
var comparing = regexp.MustCompile(`\b(eq|ne|has|kindIs|typeIs|kindOf|typeOf|contains|regexMatch)\b.*"[A-Za-z]`)

// comparedToWord reports whether a template may compare the value at a path with a word, so
// that the word can be valid although the field of the value is a number.
func comparedToWord(templates []analysis.File, path []string) bool {
	name := "." + path[len(path)-1]
	for _, file := range templates {
		for line := range strings.Lines(file.Text) {
			if strings.Contains(line, name) && comparing.MatchString(line) {
				return true
			}
		}
	}
	return false
}
