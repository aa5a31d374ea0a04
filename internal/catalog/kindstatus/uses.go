package kindstatus

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// uses tells whether an expression speaks of values, and of which entries of
// observe. It is an error to speak of one that is not there. An expression
// that computes the name speaks of all.
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
				return false, nil, fmt.Errorf("observe has no entry of the name %s: expected one of %s", name, listed(names))
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
		name, isText := args[1].AsLiteral().(types.String)
		return string(name), isText
	default:
		return "", false
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none, for there is no observe"
	}
	return strings.Join(names, ", ")
}
