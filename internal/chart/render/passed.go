package render

import (
	"reflect"
	"text/template"
)

// instruments returns the functions that are inserted into parsed templates. Functions
// that return their argument use reflect.Value, because text/template writes some values
// differently after a copy.
func (b *budget) instruments() template.FuncMap {
	return template.FuncMap{
		turnFunction: func(steps int) string {
			b.take(steps)
			return ""
		},
		enterFunction: func(depth int) string {
			b.enter(depth)
			return ""
		},
		leaveFunction: func(depth int) string {
			b.leave(depth)
			return ""
		},
		printFunction: func(value reflect.Value) reflect.Value { return b.passed("an action", value) },
		weighFunction: func(from reflect.Value, fields ...string) string {
			b.passed("YAML", at(from, fields))
			return ""
		},
		afterFunction: func(_ string, value reflect.Value) reflect.Value { return b.made(value) },
		rangeFunction: b.ranged,
		madeFunction:  b.made,
	}
}

// passed weighs a value that is going to be written, and returns it.
func (b *budget) passed(what string, value reflect.Value) reflect.Value {
	switch kind := value.Kind(); {
	case kind == reflect.Invalid, kind <= reflect.Complex128, kind == reflect.String:
	case value.CanInterface():
		b.weigh(what, value.Interface())
	}
	return value
}

// perEntry is the memory per entry of a map in a range, because text/template sorts a
// copy.
const perEntry = 100

// ranged counts a value that a range is going to iterate over, and returns it.
func (b *budget) ranged(value reflect.Value) reflect.Value {
	if concrete(value).Kind() == reflect.Map {
		length := concrete(value).Len()
		b.take(length >> 4)
		b.keep(length * perEntry)
	}
	return value
}

// made counts the result of a method, and returns it.
func (b *budget) made(value reflect.Value) reflect.Value {
	b.step()
	switch v := concrete(value); v.Kind() {
	case reflect.String:
		b.read(v.Len())
		b.keep(v.Len())
	case reflect.Map:
		b.keep(v.Len() * perEntry)
	case reflect.Slice:
		b.keep(v.Len() * int(v.Type().Elem().Size()))
	}
	return value
}

// at returns a value in nested maps, or the zero Value.
func at(value reflect.Value, fields []string) reflect.Value {
	for _, name := range fields {
		value = concrete(value)
		if value.Kind() != reflect.Map || value.Type().Key().Kind() != reflect.String {
			return reflect.Value{}
		}
		value = value.MapIndex(reflect.ValueOf(name).Convert(value.Type().Key()))
	}
	return concrete(value)
}
