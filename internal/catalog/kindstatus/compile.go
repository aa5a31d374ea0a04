package kindstatus

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"

	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Fields are the status fields of a kind. A nil Fields has none. It may be used
// concurrently.
type Fields struct{ fields []field }

type field struct {
	name    string
	program cel.Program
	shape   Shape
	// values: the expression speaks of values.
	values bool
	// observed are the entries of observe that it speaks of.
	observed []string
}

// Error is what is wrong with one expression.
type Error struct {
	Field   string
	Message string
}

// Error names the field.
func (e Error) Error() string { return e.Field + ": " + e.Message }

// Compile checks the expression of each field. Observed are the names of the
// entries of observe. It returns nil Fields where there is no field, and every
// Error, in the order of the names.
func Compile(expressions map[string]string, observed []string) (*Fields, []Error) {
	if len(expressions) == 0 {
		return nil, nil
	}
	var problems []Error
	compiled := &Fields{}
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		f, err := compile(name, expressions[name], observed)
		if err != nil {
			problems = append(problems, Error{Field: name, Message: err.Error()})
			continue
		}
		compiled.fields = append(compiled.fields, f)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return compiled, nil
}

func compile(name, text string, observed []string) (field, error) {
	env, err := environment()
	if err != nil {
		return field{}, fmt.Errorf("set up CEL: %w", err)
	}
	ast, err := expression.Check(env, text)
	if err != nil {
		return field{}, err
	}
	f := field{name: name, shape: shapeOf(ast.OutputType())}
	if f.values, f.observed, err = uses(ast, observed); err != nil {
		return field{}, err
	}
	f.program, err = expression.Program(env, ast)
	if err != nil {
		return field{}, err
	}
	return f, nil
}

// Names returns the names of the fields, in order.
func (f *Fields) Names() []string {
	if f == nil {
		return nil
	}
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = field.name
	}
	return names
}

// Shape returns the shape of a field, and whether there is such a field.
func (f *Fields) Shape(name string) (Shape, bool) {
	if f == nil {
		return Shape{}, false
	}
	i := slices.IndexFunc(f.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return Shape{}, false
	}
	return f.fields[i].shape, true
}

// UseValues tells whether some expression speaks of values.
func (f *Fields) UseValues() bool {
	return f != nil && slices.ContainsFunc(f.fields, func(f field) bool { return f.values })
}
