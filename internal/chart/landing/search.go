package landing

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
)

// search finds markers in rendered objects.
type search struct {
	markers  []*marker
	byNumber map[int64]*marker
}

// marker is a value that is searched in rendered objects.
type marker struct {
	path []string
	kind markerKind
	// number is the value of a number, and the identity of other markers.
	number int64

	// found holds fields with the marker, one of each type.
	found []field
	// elsewhere is true if the marker is a part of a text, or in a field of unknown type.
	elsewhere bool
	// templated is true if texts below the value are executed as templates.
	templated bool
	// refused is true if the chart or the API server refuses a text instead of a number.
	refused bool
}

// field is a field of an object of Kubernetes.
type field struct {
	Kind schema.GroupVersionKind `json:"kind"`
	// Path consists of keys (string) and indices of lists (int).
	Path []any `json:"path"`

	of reflect.Type
}

type markerKind int

const (
	aNumber markerKind = iota
	aMap
	aList
)

// probeKey is the key of a marker in a map.
const probeKey = "chartwright-probe"

// word returns the text of a marker.
func (m *marker) word() string { return fmt.Sprintf("chartwright-p%dp", m.number) }

// words matches texts of markers, and numbers that are words.
var words = regexp.MustCompile(`chartwright-p(\d+)p|\b(\d{3,5})\b`)

// value returns the value of the marker. Its text is a template, so that it shows whether
// the chart executes texts.
func (m *marker) value() any {
	text := fmt.Sprintf("{{ %q }}", m.word())
	switch m.kind {
	case aMap:
		return map[string]any{probeKey: text}
	case aList:
		return []any{map[string]any{probeKey: text}}
	}
	return m.number
}

// objects searches the markers in rendered objects.
func (s *search) objects(found chart.Found) {
	for _, o := range slices.Concat(found.Objects, found.Hooks) {
		s.value(o, nil, o.Object)
	}
}

func (s *search) value(o chart.RenderedObject, path []any, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == probeKey && s.holder(o, path, v[key]) {
				continue
			}
			s.text(key)
			s.value(o, append(slices.Clip(path), key), v[key])
		}
	case []any:
		for i, inner := range v {
			s.value(o, append(slices.Clip(path), i), inner)
		}
	case int64:
		if m := s.byNumber[v]; m != nil && m.kind == aNumber {
			m.add(o, path)
		}
	case float64:
		if m := s.byNumber[int64(v)]; m != nil && m.kind == aNumber {
			m.add(o, path)
		}
	case string:
		s.text(v)
	}
}

// holder notes the map or list that contains a marker, and reports whether it is one.
func (s *search) holder(o chart.RenderedObject, path []any, value any) bool {
	text, ok := value.(string)
	if !ok {
		return false
	}
	m := s.named(text)
	if m == nil {
		return false
	}
	switch m.kind {
	case aNumber:
		m.elsewhere = true
	case aList:
		if _, inList := last(path).(int); !inList {
			m.elsewhere = true
			return true
		}
		m.add(o, path[:len(path)-1])
	case aMap:
		m.add(o, path)
	}
	m.templated = m.templated || text == m.word()
	return true
}

func last(path []any) any {
	if len(path) == 0 {
		return nil
	}
	return path[len(path)-1]
}

// refusals notes the numbers that are texts in fields of other types.
func (s *search) refusals(found chart.Found) {
	for _, o := range slices.Concat(found.Objects, found.Hooks) {
		eachText(o.Object, nil, func(path []any, text string) {
			m := s.named(text)
			if m == nil || text != m.word() {
				return
			}
			if t := typeAt(o.GroupVersionKind(), path); t != nil && isNumber(t) {
				m.refused = true
			}
		})
	}
}

func isNumber(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return !reflect.PointerTo(t).Implements(unmarshaler)
	}
	return false
}

func eachText(value any, path []any, do func(path []any, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			eachText(inner, append(slices.Clip(path), key), do)
		}
	case []any:
		for i, inner := range v {
			eachText(inner, append(slices.Clip(path), i), do)
		}
	case string:
		do(path, v)
	}
}

// text notes markers that are parts of a text.
func (s *search) text(text string) {
	for _, match := range words.FindAllStringSubmatch(text, -1) {
		if m := s.marked(match[1] + match[2]); m != nil && (match[1] != "" || m.kind == aNumber) {
			m.elsewhere = true
		}
	}
}

// named returns the marker whose word is in a text, or nil.
func (s *search) named(text string) *marker {
	if match := words.FindStringSubmatch(text); len(match) > 0 && match[1] != "" {
		return s.marked(match[1])
	}
	return nil
}

// marked returns the marker with a number, or nil. No marker has the result for a number that
// is too large.
func (s *search) marked(digits string) *marker {
	number, _ := strconv.ParseInt(digits, 10, 64)
	return s.byNumber[number]
}

// add notes a field that contains the marker.
func (m *marker) add(o chart.RenderedObject, path []any) {
	t := typeAt(o.GroupVersionKind(), path)
	if t == nil {
		m.elsewhere = true
		return
	}
	if !slices.ContainsFunc(m.found, func(f field) bool { return f.of == t }) {
		m.found = append(m.found, field{o.GroupVersionKind(), path, t})
	}
}

// landing returns a field with the marker, and false if the fields have different types.
func (m *marker) landing() (field, bool) {
	fields := m.found
	if m.kind == aNumber {
		// Other fields accept a number, too, such as the target port of a service.
		fields = slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return !isNumber(f.of) })
		fields = fields[:min(1, len(fields))]
	}
	if m.elsewhere || len(fields) != 1 {
		return field{}, false
	}
	return fields[0], true
}

// String formats the field as in the documentation of Kubernetes, without indices.
func (f field) String() string {
	var keys []string
	for _, step := range f.Path {
		if key, ok := step.(string); ok {
			keys = append(keys, key)
		}
	}
	return f.Kind.Kind + " " + strings.Join(keys, ".")
}
