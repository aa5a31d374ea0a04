package kindstatus

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// ObservedPaths returns the paths of the fields that the expressions read of the objects of
// an entry of observe. An empty path means that an expression may read whole objects.
func (f Fields) ObservedPaths(name string) (paths [][]string) {
	for _, field := range f {
		paths = append(paths, field.observedPaths[name]...)
	}
	return paths
}

// whole is the path of an item as a whole.
var whole = [][]string{{}}

// itemPaths returns the paths of the fields that are read of the items of a list. It returns
// an empty path for every use that it does not know, so that no field is missing.
func itemPaths(list ast.NavigableExpr) [][]string {
	parent, ok := list.Parent()
	if !ok {
		return whole
	}
	switch parent.Kind() {
	case ast.CallKind:
		switch call := parent.AsCall(); call.FunctionName() {
		case operators.Index, operators.OptIndex:
			// list[0].a
			return [][]string{path(parent)}
		case overloads.Size:
			return nil
		}
	case ast.ComprehensionKind:
		// list.map(item, item.a)
		if c := parent.AsComprehension(); c.IterRange().ID() == list.ID() && !c.HasIterVar2() {
			return variablePaths(parent, list.ID())
		}
	}
	return whole
}

// variablePaths returns the paths of the fields that are read of the variable of a
// comprehension over a list.
func variablePaths(comprehension ast.NavigableExpr, list int64) (paths [][]string) {
	variable := comprehension.AsComprehension().IterVar()
	for _, ident := range ast.MatchDescendants(comprehension, ast.KindMatcher(ast.IdentKind)) {
		if ident.AsIdent() != variable || isWithin(ident, list) {
			continue
		}
		if read := path(ident); len(read) > 0 {
			paths = append(paths, read)
			continue
		}
		if !isCollected(ident, comprehension) {
			return whole
		}
		// list.filter(item, …) is a list of the same items.
		paths = append(paths, itemPaths(comprehension)...)
	}
	return paths
}

// isWithin reports whether an expression is the one with an ID, or a part of it.
func isWithin(expr ast.NavigableExpr, id int64) bool {
	for at, ok := expr, true; ok; at, ok = at.Parent() {
		if at.ID() == id {
			return true
		}
	}
	return false
}

// isCollected reports whether a comprehension, as that of the macro filter, appends the item
// to its result: result + [item].
func isCollected(item, comprehension ast.NavigableExpr) bool {
	list, ok := item.Parent()
	if !ok || list.Kind() != ast.ListKind || list.AsList().Size() != 1 {
		return false
	}
	sum, ok := list.Parent()
	if !ok || sum.Kind() != ast.CallKind || sum.AsCall().FunctionName() != operators.Add {
		return false
	}
	c, result := comprehension.AsComprehension(), sum.AsCall().Args()[0]
	if result.Kind() != ast.IdentKind || result.AsIdent() != c.AccuVar() || c.Result().Kind() != ast.IdentKind {
		return false
	}
	step := c.LoopStep()
	inStep := []int64{step.ID()}
	if step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
		for _, branch := range step.AsCall().Args()[1:] {
			inStep = append(inStep, branch.ID())
		}
	}
	return slices.Contains(inStep, sum.ID())
}
