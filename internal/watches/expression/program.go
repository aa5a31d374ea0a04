package expression

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
)

// Error is an error in the expression of a field.
type Error struct {
	Field   string
	Message string
}

// Error returns the field and the message.
func (e Error) Error() string { return e.Field + ": " + e.Message }

// Compile parses an expression, checks its types, and compiles it for Evaluate if accept
// returns no error. The error is one line that starts with the column, and with the line if
// the expression has several.
func Compile(environment func() (*cel.Env, error), expression string, accept func(*cel.Ast) error) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	ast, err := check(env, expression)
	if err != nil {
		return nil, err
	}
	if err := accept(ast); err != nil {
		return nil, err
	}
	return program(env, ast)
}

func check(env *cel.Env, expression string) (*cel.Ast, error) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s", explain(expression, issues))
	}
	return ast, nil
}

// explain joins the issues on one line. CEL formats each on several lines.
func explain(expression string, issues *cel.Issues) string {
	texts := make([]string, 0, len(issues.Errors()))
	for _, e := range issues.Errors() {
		at := fmt.Sprintf("column %d", e.Location.Column()+1)
		if strings.Contains(strings.TrimSpace(expression), "\n") {
			at = fmt.Sprintf("line %d, %s", e.Location.Line(), at)
		}
		texts = append(texts, at+": "+strings.ReplaceAll(e.Message, " (in container '')", ""))
	}
	return strings.Join(texts, "; ")
}

// Evaluate returns the value of an expression. It returns a panic as an error.
func Evaluate(program cel.Program, variables map[string]any) (value ref.Val, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("internal error: %v", p)
		}
	}()
	value, _, err = program.Eval(variables)
	if err != nil {
		return nil, explainCost(err)
	}
	return value, nil
}

// explainCost replaces the error message for an exceeded cost limit.
func explainCost(err error) error {
	if strings.Contains(err.Error(), "cost limit exceeded") {
		return fmt.Errorf("the evaluation exceeds the limit of %d steps: simplify the expression", costLimit)
	}
	return err
}

// maxRange is the maximum length of a list that lists.range returns.
const maxRange = 10_000

// Environment returns an environment with the functions for all expressions, and with the
// variables and types of the options.
func Environment(options ...cel.EnvOption) (*cel.Env, error) {
	shared := make([]cel.EnvOption, 0, 8+len(options))
	shared = append(shared,
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Sets(), ext.Math(), ext.Bindings(),
		// In JSON 1 equals 1.0.
		cel.CrossTypeNumericComparisons(true),
		sortedMaps,
	)
	return cel.NewEnv(append(shared, options...)...)
}

// Self is the CEL variable that holds the object in ObjectEnvironment, as in the validation
// rules of a CRD.
const Self = "self"

// ObjectEnvironment returns the environment of expressions that read one object.
var ObjectEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return Environment(cel.Variable(Self, cel.MapType(cel.StringType, cel.DynType)))
})

// costLimit limits one evaluation of an expression. Sorting the names of a thousand objects
// takes a fifth of it, and the whole limit takes well under a second.
const costLimit = 250_000

func program(env *cel.Env, ast *cel.Ast) (cel.Program, error) {
	sorted := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType}
	trackers := make([]interpreter.CostTrackerOption, 0, 2*len(sorted))
	// By default CEL counts n² steps for a sort.
	for _, t := range sorted {
		for _, call := range []string{"sort", "sortByAssociatedKeys"} {
			trackers = append(trackers, interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_%s", t.TypeName(), call), sortCost))
		}
	}
	return env.Program(ast, cel.CostTrackerOptions(trackers...), cel.CostLimit(costLimit), cel.CustomDecoratorV2(sortMapLiterals))
}

// sortCost returns n·log(n), the cost of a sort.
func sortCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	if list, ok := args[0].(traits.Sizer); ok {
		if size, ok := list.Size().(types.Int); ok && size > 0 {
			n := uint64(size)
			cost += n * uint64(bits.Len64(n))
		}
	}
	return &cost
}
