package kindstatus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Fields are the status fields of a kind, sorted by name. They may be used concurrently.
type Fields []field

type field struct {
	name    string
	program cel.Program
	shape   Shape
	// values: the expression reads values.
	values bool
	// observed are the entries of observe that the expression reads.
	observed []string
}

// Error is an error in the expression of a field, or in its evaluation.
type Error = expression.Error

// Compile compiles the expression of each field. observed are the names of the entries of
// observe. It returns nil Fields without expressions, and all errors, sorted by field.
func Compile(expressions map[string]string, observed []string) (Fields, []expression.Error) {
	var problems []expression.Error
	var compiled Fields
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		f, err := compile(name, expressions[name], observed)
		if err != nil {
			problems = append(problems, expression.Error{Field: name, Message: err.Error()})
			continue
		}
		compiled = append(compiled, f)
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

// Names returns the names of the fields, sorted.
func (f Fields) Names() []string {
	names := make([]string, len(f))
	for i, field := range f {
		names[i] = field.name
	}
	return names
}

// Shape returns the shape of a field, and whether the field exists.
func (f Fields) Shape(name string) (Shape, bool) {
	i := slices.IndexFunc(f, func(f field) bool { return f.name == name })
	if i < 0 {
		return Shape{}, false
	}
	return f[i].shape, true
}

// UseValues reports whether any expression reads values.
func (f Fields) UseValues() bool {
	return slices.ContainsFunc(f, func(f field) bool { return f.values })
}

// Variables of expressions.
const (
	varRelease   = "release"
	varValues    = "values"
	varResources = "resources"
	varObserved  = "observed"
)

// environment is the CEL environment of all expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return expression.Environment(
		withStructs,
		cel.Variable(varRelease, cel.ObjectType(typeRelease)),
		cel.Variable(varValues, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varResources, cel.ListType(cel.ObjectType(typeResource))),
		cel.Variable(varObserved, cel.MapType(cel.StringType, cel.ListType(cel.DynType))),
	)
})

// uses reports whether an expression reads values, and which entries of observe it reads.
// It returns an error for an unknown entry. An expression that computes the name of an
// entry counts as reading all of them.
func uses(compiled *cel.Ast, names []string) (values bool, observed []string, err error) {
	root := ast.NavigateAST(compiled.NativeRep())
	for _, ident := range ast.MatchDescendants(root, ast.KindMatcher(ast.IdentKind)) {
		switch ident.AsIdent() {
		case varValues:
			values = true
		case varObserved:
			name, known := entry(ident)
			switch {
			case !known:
				observed = append(observed, names...)
			case !slices.Contains(names, name):
				return false, nil, fmt.Errorf("observe has no entry %s: expected one of %s", name, listed(names))
			default:
				observed = append(observed, name)
			}
		}
	}
	slices.Sort(observed)
	return values, slices.Compact(observed), nil
}

// entry returns the name in observed.<name> or observed['<name>'].
func entry(ident ast.NavigableExpr) (string, bool) {
	parent, ok := ident.Parent()
	if !ok {
		return "", false
	}
	switch parent.Kind() {
	case ast.SelectKind:
		return parent.AsSelect().FieldName(), true
	case ast.CallKind:
		args := parent.AsCall().Args()
		if parent.AsCall().FunctionName() != operators.Index || len(args) != 2 || args[1].Kind() != ast.LiteralKind {
			return "", false
		}
		name, isString := args[1].AsLiteral().(types.String)
		return string(name), isString
	default:
		return "", false
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none, because the entry has no observe"
	}
	return strings.Join(names, ", ")
}
