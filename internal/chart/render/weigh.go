package render

import (
	"math"
	"reflect"
	"strings"
)

// weigher computes the size of values when they are written or traversed. A value that
// appears twice counts twice. The weigher stops if the size exceeds most, or if values are
// nested too deep, as recursive values are.
type weigher struct {
	bytes, values, most int
	deep                bool
	// indent is the additional indentation of nested values. If paths is true, each line
	// also begins with the keys of all outer values. before is the resulting number of
	// bytes before each line.
	indent, before int
	paths          bool
}

// perValue is the size of a value in addition to its text, for punctuation.
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

// down enters a nested value, and returns the previous value of before.
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
			// The text of a number has up to four characters per byte.
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

// weigh is called before values are traversed, and returns their size and number.
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

// result counts the result of a function.
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
			// The struct is a certificate and its key.
			for _, field := range v.Fields() {
				if field.Kind() == reflect.String {
					b.keep(field.Len())
				}
			}
		}
	}
}

// bytesOfToken is the memory per token of YAML or JSON during and after parsing.
const bytesOfToken = 300

// product multiplies without overflow.
func product(a, b int) float64 { return math.Abs(float64(a)) * math.Abs(float64(b)) }

// occurrences returns the number of parts into which strings.Split splits a text.
func occurrences(of, in string) int {
	return strings.Count(in, of) + 1
}
