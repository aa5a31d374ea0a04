package render

import (
	"reflect"
	"text/template"
)

// instruments are the functions that are put into parsed templates. Those that
// pass something on take and give a reflect.Value, for some values are written
// otherwise when they are copied.
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

// passed passes a value on that is going to be written.
func (b *budget) passed(what string, value reflect.Value) reflect.Value {
	switch kind := value.Kind(); {
	case kind == reflect.Invalid, kind <= reflect.Complex128, kind == reflect.String:
	case value.CanInterface():
		b.weigh(what, value.Interface())
	}
	return value
}

// perEntry is what is kept of an entry of a map while a range goes through it:
// text/template sorts a copy.
const perEntry = 100

// ranged passes a value on that a range is going to walk through.
func (b *budget) ranged(value reflect.Value) reflect.Value {
	if concrete(value).Kind() == reflect.Map {
		length := concrete(value).Len()
		b.take(length >> 4)
		b.keep(length * perEntry)
	}
	return value
}

// made passes on what a method has made.
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

// at returns what stands in maps within each other, if it is there.
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
