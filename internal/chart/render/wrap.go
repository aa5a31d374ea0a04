package render

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/sets"
)

// The functions below return a function that takes a step, calls before unless it is nil,
// and counts the result.

func wrap1[A, R any](b *budget, f func(A) R, before func(A)) func(A) R {
	return func(a A) R {
		b.step()
		if before != nil {
			before(a)
		}
		r := f(a)
		count(b, r)
		return r
	}
}

func wrap2[A, B, R any](b *budget, f func(A, B) R, before func(A, B)) func(A, B) R {
	return func(x A, y B) R {
		b.step()
		if before != nil {
			before(x, y)
		}
		r := f(x, y)
		count(b, r)
		return r
	}
}

// count counts the result of a function. A result of type any is not counted, because such
// functions return a value that exists already, as get does.
func count[R any](b *budget, value R) {
	if _, passed := any(&value).(*any); !passed {
		b.result(value)
	}
}

// wrapAll wraps a function with a variable number of arguments.
func wrapAll[A, R any](b *budget, f func(...A) R, before func([]A)) func(...A) R {
	return func(all ...A) R {
		b.step()
		if before != nil {
			before(all)
		}
		r := f(all...)
		count(b, r)
		return r
	}
}

// wrapAny wraps any function, by reflection, which is slower. It also takes steps for
// long strings.
func wrapAny(b *budget, f any, before func(arguments []reflect.Value)) any {
	called := reflect.ValueOf(f)
	call := caller(called)
	return reflect.MakeFunc(called.Type(), func(arguments []reflect.Value) []reflect.Value {
		b.step()
		for _, argument := range arguments {
			if argument.Kind() == reflect.String {
				b.read(argument.Len())
			}
		}
		if before != nil {
			before(arguments)
		}
		results := call(arguments)
		if called.Type().Out(0).Kind() != reflect.Interface {
			b.result(results[0].Interface())
		}
		return results
	}).Interface()
}

// caller returns the method that calls a function with the arguments that
// reflect.MakeFunc passes.
func caller(f reflect.Value) func([]reflect.Value) []reflect.Value {
	if f.Type().IsVariadic() {
		return f.CallSlice
	}
	return f.Call
}

// shallow holds the functions that never traverse their arguments, not even to format an
// error.
var shallow = sets.New(
	"all", "any", "append", "chunk", "coalesce", "compact", "default", "dig", "empty", "first", "get", "hasKey", "initial",
	"keys", "kindIs", "kindOf", "last", "list", "mustAppend", "mustChunk", "mustCompact", "mustFirst", "mustInitial",
	"mustLast", "mustPrepend", "mustPush", "mustRest", "mustReverse", "omit", "pick", "pluck", "prepend",
	"push", "required", "rest", "reverse", "ternary", "tuple", "typeIs", "typeIsLike", "typeOf", "unset", "values",
)

// weighArguments weighs the arguments that a function may traverse, at least to format an
// error.
func (b *budget) weighArguments(name string, arguments []reflect.Value) {
	for _, argument := range arguments {
		switch argument.Kind() {
		case reflect.Interface, reflect.Slice, reflect.Map:
			b.weigh(name, argument.Interface())
		}
	}
}

// wrapped wraps a function whose result is not much larger than its arguments.
func wrapped(b *budget, name string, f any) any {
	switch f := f.(type) {
	case func(string) string:
		return wrap1(b, f, func(text string) { b.read(len(text)) })
	case func(string, string) string:
		return wrap2(b, f, func(one, other string) { b.read(len(one) + len(other)) })
	case func(string, string) bool:
		return wrap2(b, f, func(one, other string) { b.read(len(one) + len(other)) })
	case func(int, string) string:
		return wrap2(b, f, nil)
	case func(map[string]any, string) bool:
		return wrap2(b, f, nil)
	case func(map[string]any, string) any:
		return wrap2(b, f, nil)
	}
	if !shallow.Has(name) {
		return wrappedDeep(b, name, f)
	}
	switch f := f.(type) {
	case func(any) string:
		return wrap1(b, f, nil)
	case func(any) bool:
		return wrap1(b, f, nil)
	case func(string, any) bool:
		return wrap2(b, f, nil)
	case func(...any) []any:
		return wrapAll(b, f, nil)
	case func(...any) any:
		return wrapAll(b, f, nil)
	case func(any, ...any) any: // default
		return func(first any, more ...any) any {
			b.step()
			return f(first, more...)
		}
	default:
		return wrapAny(b, f, nil)
	}
}

// wrappedDeep wraps a function that may traverse its arguments.
func wrappedDeep(b *budget, name string, f any) any {
	switch f := f.(type) {
	case func(any) int64:
		return wrap1(b, f, func(value any) { b.weigh(name, value) })
	case func(any) int:
		return wrap1(b, f, func(value any) { b.weigh(name, value) })
	case func(...any) int64:
		return wrapAll(b, f, func(values []any) { b.weigh(name, values...) })
	default:
		return wrapAny(b, f, func(arguments []reflect.Value) { b.weighArguments(name, arguments) })
	}
}
