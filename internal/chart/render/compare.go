package render

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"text/template"
)

// guardComparisons guards the comparisons of text/template, whose errors contain the
// compared values, and which compare strings of any length.
func guardComparisons(b *budget, all template.FuncMap) {
	for name := range comparisons {
		all[name] = func(one, other reflect.Value) (bool, error) { return b.compare(name, one, other) }
	}
	all["eq"] = func(one reflect.Value, others ...reflect.Value) (bool, error) {
		if len(others) == 0 {
			return false, errors.New("missing argument for comparison")
		}
		for _, other := range others {
			if equal, err := b.compare("eq", one, other); equal || err != nil {
				return equal, err
			}
		}
		return false, nil
	}
}

// comparisons holds, by function, the result for the sign of a comparison, and the
// function of text/template for values without an order.
var comparisons = map[string]struct {
	of    func(sign int) bool
	other *template.Template
}{
	"eq": {func(sign int) bool { return sign == 0 }, comparison("eq")},
	"ne": {func(sign int) bool { return sign != 0 }, comparison("ne")},
	"lt": {func(sign int) bool { return sign < 0 }, comparison("lt")},
	"le": {func(sign int) bool { return sign <= 0 }, comparison("le")},
	"gt": {func(sign int) bool { return sign > 0 }, comparison("gt")},
	"ge": {func(sign int) bool { return sign >= 0 }, comparison("ge")},
}

// comparison returns a template that compares. Go does not export these functions.
func comparison(name string) *template.Template {
	return template.Must(template.New(name).Parse("{{ " + name + " .One .Other }}"))
}

func (b *budget) compare(name string, one, other reflect.Value) (bool, error) {
	b.step()
	one, other = concrete(one), concrete(other)
	by := comparisons[name]
	switch {
	case one.Kind() == reflect.String && other.Kind() == reflect.String:
		b.read(min(one.Len(), other.Len()))
		return by.of(strings.Compare(one.String(), other.String())), nil
	case one.CanInt() && other.CanInt():
		return by.of(cmp.Compare(one.Int(), other.Int())), nil
	}
	for _, value := range []reflect.Value{one, other} {
		if value.IsValid() && value.CanInterface() {
			b.weigh(name, value.Interface())
		}
	}
	var result strings.Builder
	err := by.other.Execute(&result, struct{ One, Other reflect.Value }{one, other})
	if failed, ok := errors.AsType[template.ExecError](err); ok {
		// The error of the function is wrapped twice.
		err = errors.Unwrap(failed.Err)
	}
	return result.String() == "true", err
}

// concrete returns the value in an interface, and any other value unchanged.
func concrete(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Interface {
		return value.Elem()
	}
	return value
}
