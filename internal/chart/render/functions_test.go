package render

import (
	"reflect"
	"testing"
)

// The types of guarded functions must not change, because text/template converts and
// rejects arguments by type, and its errors contain the type.
func TestGuarded_KeepsTypes(t *testing.T) {
	all := guarded(newBudget(t.Context(), Defaults(), nil))
	for name, f := range functions {
		if is, want := reflect.TypeOf(all[name]), reflect.TypeOf(f); is != want {
			t.Errorf("%s is a %s, want %s", name, is, want)
		}
	}
}

// Each function with a recursive argument must return, or panic with a LimitError. A
// function that traverses the argument would overflow the stack and end the process.
func TestGuarded_RecursiveValues(t *testing.T) {
	dictionary, list := map[string]any{}, make([]any, 1)
	dictionary["x"], list[0] = dictionary, list
	stopped := 0
	for name := range guarded(newBudget(t.Context(), Defaults(), nil)) {
		for _, endless := range []any{dictionary, list} {
			b := newBudget(t.Context(), Defaults(), make(chan struct{}, 1))
			f := reflect.ValueOf(guarded(b)[name])
			arguments := make([]reflect.Value, 0, 4)
			for i := range f.Type().NumIn() {
				in := f.Type().In(i)
				if i == f.Type().NumIn()-1 && f.Type().IsVariadic() {
					in = in.Elem()
					arguments = append(arguments, valueOf(in, endless))
				}
				arguments = append(arguments, valueOf(in, endless))
			}
			func() {
				// Other panics are errors of the template.
				defer func() { _ = recover() }()
				f.Call(arguments)
			}()
			if b.err != nil {
				stopped++
			}
		}
	}
	if stopped < 50 {
		t.Errorf("only %d calls were stopped", stopped)
	}
}

func valueOf(in reflect.Type, endless any) reflect.Value {
	switch {
	case in == reflect.TypeFor[reflect.Value]():
		return reflect.ValueOf(reflect.ValueOf(endless))
	case reflect.TypeOf(endless).AssignableTo(in):
		return reflect.ValueOf(endless)
	case in.Kind() == reflect.String:
		return reflect.ValueOf("1")
	case in.Kind() == reflect.Int:
		return reflect.ValueOf(1)
	}
	return reflect.Zero(in)
}
