package kindstatus

import (
	"errors"
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
	// observed are the entries of observe that the expression reads, and objects the kinds
	// of the release's objects.
	observed []string
	objects  []string
	// observedPaths are the paths of the fields of their objects that the expression reads.
	observedPaths map[string][][]string
	// valuePaths are the paths of the values that the expression reads.
	valuePaths [][]string
}

// Error is an error in the expression of a field, or in its evaluation.
type Error = expression.Error

// Compile compiles the expression of each field. observed are the names of the entries of
// observe. It returns nil Fields without expressions, and all errors, sorted by field.
func Compile(expressions map[string]string, observed []string) (Fields, []expression.Error) {
	return compileAll(environment, expressions, observed)
}

// CompileOutputs compiles the expression of each output, like Compile. These expressions
// may also read objects.
func CompileOutputs(expressions map[string]string, observed []string) (Fields, []expression.Error) {
	return compileAll(outputEnvironment, expressions, observed)
}

func compileAll(environment func() (*cel.Env, error), expressions map[string]string, observed []string) (Fields, []expression.Error) {
	var problems []expression.Error
	var compiled Fields
	for _, name := range slices.Sorted(maps.Keys(expressions)) {
		f, err := compile(environment, name, expressions[name], observed)
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

func compile(environment func() (*cel.Env, error), name, text string, observed []string) (field, error) {
	f := field{name: name}
	var err error
	f.program, err = expression.Compile(environment, text, func(ast *cel.Ast) error {
		f.shape = shapeOf(ast.OutputType())
		return f.findUses(ast, observed)
	})
	return f, err
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

// Split returns the fields that a function accepts by name, and the others.
func (f Fields) Split(accept func(name string) bool) (accepted, others Fields) {
	for _, field := range f {
		if accept(field.name) {
			accepted = append(accepted, field)
		} else {
			others = append(others, field)
		}
	}
	return accepted, others
}

// Objects returns the kinds of the release's objects that any expression reads, sorted, as
// they are written: Secret or Ingress.networking.k8s.io.
func (f Fields) Objects() (kinds []string) {
	for _, field := range f {
		kinds = append(kinds, field.objects...)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// ReadsObjects reports whether the expression of a field reads objects of a kind.
func (f Fields) ReadsObjects(name string, is func(kind string) bool) bool {
	return slices.ContainsFunc(f, func(f field) bool { return f.name == name && slices.ContainsFunc(f.objects, is) })
}

// ReadsValue reports whether the expression of a field may read the value at a path, a part
// of it, or a value that contains it. The empty path means all values.
func (f Fields) ReadsValue(name string, at []string) bool {
	return slices.ContainsFunc(f, func(f field) bool {
		return f.name == name && slices.ContainsFunc(f.valuePaths, func(read []string) bool {
			n := min(len(read), len(at))
			return slices.Equal(read[:n], at[:n])
		})
	})
}

// UseObserved reports whether any expression reads entries of observe.
func (f Fields) UseObserved() bool {
	return slices.ContainsFunc(f, func(f field) bool { return len(f.observed) > 0 })
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
	varObjects   = "objects"
)

// environment is the CEL environment of the expressions of status fields, and
// outputEnvironment that of outputs.
var (
	environment       = sync.OnceValues(func() (*cel.Env, error) { return newEnvironment() })
	outputEnvironment = sync.OnceValues(func() (*cel.Env, error) {
		return newEnvironment(cel.Variable(varObjects, cel.MapType(cel.StringType, cel.MapType(cel.StringType, cel.DynType))))
	})
)

func newEnvironment(more ...cel.EnvOption) (*cel.Env, error) {
	return expression.Environment(append([]cel.EnvOption{
		withStructs,
		cel.Variable(varRelease, cel.ObjectType(typeRelease)),
		cel.Variable(varValues, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varResources, cel.ListType(cel.ObjectType(typeResource))),
		cel.Variable(varObserved, cel.MapType(cel.StringType, cel.ListType(cel.DynType))),
	}, more...)...)
}

// findUses finds out what an expression reads. It returns an error for an unknown entry of
// observe. An expression that computes the name of an entry counts as reading all of them.
func (f *field) findUses(compiled *cel.Ast, names []string) error {
	root := ast.NavigateAST(compiled.NativeRep())
	for _, ident := range ast.MatchDescendants(root, ast.KindMatcher(ast.IdentKind)) {
		switch ident.AsIdent() {
		case varValues:
			f.values = true
			f.valuePaths = append(f.valuePaths, path(ident))
		case varObserved:
			name, known := entry(ident)
			switch {
			case !known:
				for _, name := range names {
					f.addObserved(name, whole)
				}
			case !slices.Contains(names, name):
				return fmt.Errorf("observe has no entry %s: expected one of %s", name, listed(names))
			default:
				// A known name has a parent.
				list, _ := ident.Parent()
				f.addObserved(name, itemPaths(list))
			}
		case varObjects:
			name, known := entry(ident)
			if !known {
				return errors.New("objects is read without a kind: expected objects.<kind>['<name>'], for example objects.Service[release.name]")
			}
			f.objects = append(f.objects, name)
		}
	}
	slices.Sort(f.observed)
	f.observed = slices.Compact(f.observed)
	slices.Sort(f.objects)
	f.objects = slices.Compact(f.objects)
	return nil
}

func (f *field) addObserved(name string, paths [][]string) {
	if f.observedPaths == nil {
		f.observedPaths = map[string][][]string{}
	}
	f.observed = append(f.observed, name)
	f.observedPaths[name] = append(f.observedPaths[name], paths...)
}

// path returns the names in values.a.b or values['a']['b'], as far as they are fixed.
func path(ident ast.NavigableExpr) (names []string) {
	for at := ident; ; {
		name, known := entry(at)
		if !known {
			return names
		}
		names = append(names, name)
		at, _ = at.Parent()
	}
}

// entry returns the name in observed.<name>, observed['<name>'], observed.?<name> or
// observed[?'<name>'], for any expression in place of observed.
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
		selects := []string{operators.Index, operators.OptIndex, operators.OptSelect}
		if !slices.Contains(selects, parent.AsCall().FunctionName()) || len(args) != 2 || args[1].Kind() != ast.LiteralKind {
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
