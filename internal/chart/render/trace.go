package render

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Trace records which values each file of a render reads. It identifies maps of values by
// their address, because templates pass them on in variables, arguments and new maps.
type Trace struct {
	// paths holds the paths of the values' maps by address.
	paths map[uintptr][]string
	files map[string]*reads
	// current are the reads of the file that is being executed.
	current *reads
}

// reads are the values that a file reads, by path.
type reads struct {
	// values are the paths of values that are read. Of a map, the file knows that it is a
	// map, and whether it is empty.
	values sets.Set[string]
	// whole are the paths of maps whose entire content is read.
	whole sets.Set[string]
}

// pathSeparator separates and precedes the keys of a path.
const pathSeparator = "\x00"

// NewTrace returns a Trace for a render with the values. The Set of the render must be
// parsed as traced.
func NewTrace(values map[string]any) *Trace {
	t := &Trace{paths: map[uintptr][]string{}, files: map[string]*reads{}}
	t.add("", values)
	return t
}

func (t *Trace) add(path string, value any) {
	vals, isMap := asMap(value)
	if !isMap {
		return
	}
	at := reflect.ValueOf(vals).Pointer()
	t.paths[at] = append(t.paths[at], path)
	for key, inner := range vals {
		t.add(path+pathSeparator+key, inner)
	}
}

// asMap returns a map of values, whatever its type.
func asMap(value any) (map[string]any, bool) {
	if vals, ok := value.(map[string]any); ok {
		return vals, vals != nil
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Map && v.CanConvert(mapType) && !v.IsNil() {
		return reflect.TypeAssert[map[string]any](v.Convert(mapType))
	}
	return nil, false
}

var mapType = reflect.TypeFor[map[string]any]()

// Affected returns the files that can differ in a render with other values. It assumes
// that both renders change no values and succeed.
func (t *Trace) Affected(before, after map[string]any) sets.Set[string] {
	changed := differences(nil, "", before, after)
	affected := sets.New[string]()
	for name, read := range t.files {
		if slices.ContainsFunc(changed, read.dependsOn) {
			affected.Insert(name)
		}
	}
	return affected
}

func (r *reads) dependsOn(changed string) bool {
	if r.values.Has(changed) {
		return true
	}
	for path := range r.whole {
		if strings.HasPrefix(changed+pathSeparator, path+pathSeparator) {
			return true
		}
	}
	return false
}

// differences adds the paths of values that differ.
func differences(to []string, path string, before, after any) []string {
	a, isMap := asMap(before)
	b, areMaps := asMap(after)
	if !isMap || !areMaps {
		if !reflect.DeepEqual(before, after) {
			to = append(to, path)
		}
		return to
	}
	if (len(a) == 0) != (len(b) == 0) {
		to = append(to, path)
	}
	for key, value := range a {
		inner := path + pathSeparator + key
		if other, ok := b[key]; ok {
			to = differences(to, inner, value, other)
		} else {
			to = append(to, inner)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			to = append(to, path+pathSeparator+key)
		}
	}
	return to
}

// begin is called before a file is executed.
func (t *Trace) begin(file string) {
	t.current = &reads{values: sets.New[string](), whole: sets.New[string]()}
	t.files[file] = t.current
}

// read records that a template reads nested fields of a value.
func (t *Trace) read(from reflect.Value, fields []string) {
	value := from
	for _, name := range fields {
		value = concrete(value)
		if value.Kind() != reflect.Map || value.Type().Key().Kind() != reflect.String {
			return
		}
		if value.Type().NumMethod() > 0 && value.MethodByName(name).IsValid() {
			// A method such as YAML of .Values can read all of its receiver.
			t.readAll(value)
			return
		}
		t.readKey(value, name)
		value = value.MapIndex(reflect.ValueOf(name).Convert(value.Type().Key()))
	}
}

// readKey records that a template reads one entry of a map.
func (t *Trace) readKey(from reflect.Value, key string) {
	for _, path := range t.paths[from.Pointer()] {
		t.current.values.Insert(path + pathSeparator + key)
	}
}

// readAll records that a template reads everything in a value.
func (t *Trace) readAll(value reflect.Value) { t.walk(value, map[uintptr]bool{}) }

// walk finds the maps of values in a value. A list in the values counts as one value.
func (t *Trace) walk(value reflect.Value, seen map[uintptr]bool) {
	value = concrete(value)
	switch value.Kind() {
	case reflect.Map:
		at := value.Pointer()
		if paths, known := t.paths[at]; known {
			t.current.whole.Insert(paths...)
			return
		}
		if seen[at] {
			return
		}
		seen[at] = true
		for entries := value.MapRange(); entries.Next(); {
			t.walk(entries.Value(), seen)
		}
	case reflect.Slice:
		switch value.Type().Elem().Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice:
		default:
			return
		}
		if at := value.Pointer(); value.Len() == 0 || seen[at] {
			return
		} else if value.Len() > 1 {
			// A slice of the first item has the same address.
			seen[at] = true
		}
		for i := range value.Len() {
			t.walk(value.Index(i), seen)
		}
	}
}

// passing holds the functions that read nothing of a map in their arguments except whether
// it is empty and its type, and whose result contains the map itself.
var passing = sets.New(
	"all", "any", "append", "coalesce", "concat", "default", "dict", "empty", "first", "initial", "kindIs", "kindOf",
	"last", "list", "mustAppend", "mustFirst", "mustInitial", "mustLast", "mustPrepend", "mustPush", "mustRest",
	"prepend", "push", "required", "rest", "set", "ternary", "tuple", "typeIs", "typeIsLike", "typeOf",
	enterFunction, leaveFunction, turnFunction, madeFunction,
)

// functions returns template functions that record what they read.
func (t *Trace) functions(all template.FuncMap) template.FuncMap {
	traced := maps.Clone(all)
	for name, f := range all {
		if !passing.Has(name) {
			traced[name] = t.function(name, f)
		}
	}
	traced[readFunction] = func(from reflect.Value, fields ...string) string {
		t.read(from, fields)
		return ""
	}
	traced[readInFunction] = func(from reflect.Value, fields ...string) reflect.Value {
		t.read(from, fields)
		return from
	}
	traced[readKeysFunction] = func(from reflect.Value, keys ...any) reflect.Value {
		var fields []string
		for _, key := range keys {
			// Another key selects an item of a list.
			if name, ok := key.(string); ok {
				fields = append(fields, name)
			}
		}
		t.read(from, fields)
		return from
	}
	traced[readAllFunction] = func(value reflect.Value) reflect.Value {
		t.readAll(value)
		return value
	}
	return traced
}

// function returns a function that records what it reads of its arguments.
func (t *Trace) function(name string, f any) any {
	called := reflect.ValueOf(f)
	call := caller(called)
	return reflect.MakeFunc(called.Type(), func(arguments []reflect.Value) []reflect.Value {
		if name == "get" || name == "hasKey" {
			t.readKey(arguments[0], arguments[1].String())
			return call(arguments)
		}
		for _, argument := range arguments {
			if value, ok := reflect.TypeAssert[reflect.Value](argument); ok {
				argument = value
			}
			t.readAll(argument)
		}
		return call(arguments)
	}).Interface()
}
