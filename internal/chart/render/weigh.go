package render

import (
	"math"
	"reflect"
	"strings"
)

// weigher finds out how large values are when they are written or walked
// through: what stands in a value twice counts twice. It ends early when that
// is more than most, or when they are nested too deep, as what contains itself
// is.
type weigher struct {
	bytes, values, most int
	deep                bool
	// indent is what is written more before each line of a value in another
	// one, paths tells that the keys of all outer ones are, too, and before is
	// how much that is.
	indent, before int
	paths          bool
}

// perValue is what a value takes beside its text: a sign or two, and more where
// it is indented.
const perValue = 8

func (w *weigher) value(value any, depth int) {
	w.values++
	w.bytes += perValue + w.before
	if w.bytes > w.most || w.deep {
		return
	}
	if depth == 0 {
		w.deep = true
		return
	}
	switch v := value.(type) {
	case nil, bool, int, int64, float64:
	case string:
		w.bytes += len(v)
		if w.before > 0 {
			w.bytes += w.before * strings.Count(v, "\n")
		}
	case []string:
		w.values += len(v)
		for _, one := range v {
			w.bytes += perValue + w.before + len(one)
		}
	case map[string]any:
		for key, one := range v {
			w.bytes += len(key)
			was := w.down(key)
			w.value(one, depth-1)
			w.before = was
		}
	case []any:
		was := w.down("")
		for _, one := range v {
			w.value(one, depth-1)
		}
		w.before = was
	default:
		w.reflected(reflect.ValueOf(value), depth)
	}
}

// down goes into a value, and returns what was written before each line of it.
func (w *weigher) down(key string) (was int) {
	was = w.before
	w.before += w.indent
	if w.paths {
		w.before += len(key) + 1
	}
	return was
}

var plainMap = reflect.TypeFor[map[string]any]()

func (w *weigher) reflected(v reflect.Value, depth int) {
	w.values++
	if w.bytes > w.most || w.deep {
		return
	}
	if depth == 0 {
		w.deep = true
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.bytes += v.Len()
	case reflect.Map:
		if v.Type().ConvertibleTo(plainMap) && v.CanInterface() {
			w.value(v.Convert(plainMap).Interface(), depth)
			return
		}
		for entries := v.MapRange(); entries.Next(); {
			w.bytes += perValue
			w.reflected(entries.Key(), depth-1)
			w.reflected(entries.Value(), depth-1)
		}
	case reflect.Slice, reflect.Array:
		if size := v.Type().Elem().Kind(); size <= reflect.Complex128 {
			// Numbers: written, a byte takes up to four.
			w.bytes += 4 * v.Len() * int(v.Type().Elem().Size())
			w.values += v.Len()
			return
		}
		for i := range v.Len() {
			w.bytes += perValue
			w.reflected(v.Index(i), depth-1)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			w.reflected(v.Elem(), depth-1)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			w.bytes += perValue
			w.reflected(field, depth-1)
		}
	default:
	}
}

// weigh is called before values are walked through, and returns their weight
// and number.
func (b *budget) weigh(what string, values ...any) (bytes, number int) {
	return b.weighBy(weigher{}, what, values...)
}

func (b *budget) weighBy(w weigher, what string, values ...any) (bytes, number int) {
	w.most = b.limits.Value
	for _, value := range values {
		w.value(value, b.limits.Depth)
	}
	if w.deep {
		b.exceededf("%s gets a value that is nested more than %d deep or contains itself", what, b.limits.Depth)
	}
	if w.bytes >= 256 {
		b.want(what, float64(w.bytes))
	}
	return w.bytes, w.values
}

// result counts what a function has made.
func (b *budget) result(value any) {
	switch v := value.(type) {
	case string:
		b.keep(len(v))
	case []string:
		bytes := 16 * len(v)
		for _, one := range v {
			bytes += len(one)
		}
		b.keep(bytes)
	case [][]any:
		b.keep(40 * len(v))
	case bool, int, int64, float64:
	default:
		switch v := reflect.ValueOf(value); v.Kind() {
		case reflect.Slice:
			b.keep(v.Len() * int(v.Type().Elem().Size()))
		case reflect.Map:
			b.keep(48 * v.Len())
		case reflect.Struct:
			// A certificate and its key.
			for _, field := range v.Fields() {
				if field.Kind() == reflect.String {
					b.keep(field.Len())
				}
			}
		}
	}
}

// bytesOfToken is what is made of a token of YAML or JSON, while and after it
// is read.
const bytesOfToken = 300

// product multiplies without overflow.
func product(a, b int) float64 { return math.Abs(float64(a)) * math.Abs(float64(b)) }

// occurrences is how often a text stands in another, as strings.Split counts.
func occurrences(of, in string) int {
	return strings.Count(in, of) + 1
}
