package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// Check parses an expression and checks its types. The error is one line that
// starts with the column, and with the line where the expression has several.
func Check(env *cel.Env, expression string) (*cel.Ast, error) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s", explain(expression, issues))
	}
	return ast, nil
}

// explain joins the issues, which CEL prints on several lines with a drawing.
func explain(expression string, issues *cel.Issues) string {
	said := make([]string, 0, len(issues.Errors()))
	for _, e := range issues.Errors() {
		at := fmt.Sprintf("column %d", e.Location.Column()+1)
		if strings.Contains(strings.TrimSpace(expression), "\n") {
			at = fmt.Sprintf("line %d, %s", e.Location.Line(), at)
		}
		said = append(said, at+": "+strings.ReplaceAll(e.Message, " (in container '')", ""))
	}
	return strings.Join(said, "; ")
}

// Program returns a checked expression in the form that Evaluate takes.
func Program(env *cel.Env, ast *cel.Ast) (cel.Program, error) {
	return env.Program(ast, append(limits(), cel.CustomDecoratorV2(literalsInOrder))...)
}

// Evaluate returns the value of an expression. A panic is returned as an error.
func Evaluate(program cel.Program, variables map[string]any) (value ref.Val, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("internal error: %v", p)
		}
	}()
	value, _, err = program.Eval(variables)
	if err != nil {
		return nil, plainer(err)
	}
	return value, nil
}

// plainer rewords errors that users would not understand.
func plainer(err error) error {
	if strings.Contains(err.Error(), "cost limit exceeded") {
		return fmt.Errorf("it takes too long: more than %d steps", costLimit)
	}
	return err
}
