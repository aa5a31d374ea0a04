package valuesfrom

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Expression is a compiled expression over an object. It is safe for concurrent use.
type Expression struct {
	text    string
	program cel.Program
}

// Compile compiles an expression. If its result is merged into the values, it must be a map,
// as far as the type is known before the evaluation.
func Compile(text string, merged bool) (*Expression, error) {
	program, err := expression.Compile(expression.ObjectEnvironment, text, func(ast *cel.Ast) error {
		if merged && !canBeMap(ast.OutputType()) {
			return fmt.Errorf("got an expression of type %s, want a map: add targetPath, or use an expression whose result is a map", ast.OutputType())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Expression{text: text, program: program}, nil
}

func canBeMap(t *cel.Type) bool {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() {
		return canBeMap(t.Parameters()[0])
	}
	return t.Kind() == types.MapKind || t.Kind() == types.DynKind
}

// maxShown limits the length of expressions and of their errors in messages.
const maxShown = 200

// String returns the text of the expression on one line. A long text is cut.
func (e *Expression) String() string {
	return api.Truncate(strings.Join(strings.Fields(e.text), " "), maxShown)
}

// errNoValue marks an expression that reads something that does not exist, or yields null.
var errNoValue = errors.New("has no value")

// evaluate returns the result for an object as a JSON value. The error wraps errNoValue if
// there is none. The error may quote the object.
func (e *Expression) evaluate(object map[string]any) (any, error) {
	value, err := expression.Evaluate(e.program, map[string]any{expression.Self: object})
	if err != nil {
		message := api.Truncate(err.Error(), maxShown)
		if isMissing(message) {
			return nil, fmt.Errorf("%w: %s", errNoValue, message)
		}
		return nil, errors.New(message)
	}
	result, err := kindstatus.Encode(value)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, fmt.Errorf("%w: the result is null", errNoValue)
	default:
		return result, nil
	}
}

// isMissing reports whether an error of CEL is about a key or an item that does not exist.
// CEL has no types for these errors.
func isMissing(message string) bool {
	return strings.HasPrefix(message, "no such key: ") || strings.HasPrefix(message, "index out of bounds: ")
}
