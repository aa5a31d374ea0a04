package health

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Rules are the health rules of a watches entry, by the kind of the objects.
type Rules map[schema.GroupKind]*Rule

// Rule is one compiled health rule. It may be used concurrently.
type Rule struct {
	ready, failed, message cel.Program
	// ownGeneration: the rule itself reads observedGeneration.
	ownGeneration bool
}

// self is the variable that holds the object, as in the validation rules of a
// CustomResourceDefinition.
const self = "self"

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return expression.Environment(cel.Variable(self, cel.MapType(cel.StringType, cel.DynType)))
})

// Compile checks the expressions of a rule, their types too. Failed and message
// may be empty. Every mistake is returned.
func Compile(ready, failed, message string) (*Rule, []expression.Error) {
	rule := &Rule{ownGeneration: strings.Contains(ready+failed, "observedGeneration")}
	var mistakes []expression.Error
	for _, field := range []struct {
		name, text string
		gives      *cel.Type
		into       *cel.Program
	}{
		{"ready", ready, cel.BoolType, &rule.ready},
		{"failed", failed, cel.BoolType, &rule.failed},
		{"message", message, cel.StringType, &rule.message},
	} {
		if field.text == "" {
			continue
		}
		program, err := compile(field.text, field.gives)
		if err != nil {
			mistakes = append(mistakes, expression.Error{Field: field.name, Message: err.Error()})
			continue
		}
		*field.into = program
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	return rule, nil
}

func compile(text string, gives *cel.Type) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	ast, err := expression.Check(env, text)
	if err != nil {
		return nil, err
	}
	// The fields of an object have no known type.
	if actual := ast.OutputType(); !actual.IsExactType(gives) && !actual.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("got an expression of type %s, want %s", actual, gives)
	}
	return expression.Program(env, ast)
}

// evaluate evaluates the rule. An expression that fails, most often because a field is
// not there yet, never makes the object fail.
func (r *Rule) evaluate(s subject) Result {
	if behind, ok := s.outdated(); ok && !r.ownGeneration {
		return behind
	}
	variables := map[string]any{self: s.object}
	if r.failed != nil {
		if has, err := boolean(r.failed, variables); err == nil && has {
			return failed(ReasonRuleFailed, cmp.Or(r.explanation(variables), "the health rule's failed is true"))
		}
	}
	is, err := boolean(r.ready, variables)
	switch {
	case err != nil:
		return Result{
			OpenEnded: true, Reported: reported(s.status()), Reason: ReasonRuleNotEvaluated,
			Message: api.Truncate(fmt.Sprintf("the health rule's ready cannot be evaluated yet: %v", err), maxMessage),
		}
	case is:
		return Result{Ready: true, Reported: reported(s.status())}
	default:
		waits := progressing(ReasonRuleNotReady, cmp.Or(r.explanation(variables), "the health rule's ready is false"))
		waits.Reported = reported(s.status())
		return waits
	}
}

// explanation returns the rule's message, empty where there is none.
func (r *Rule) explanation(variables map[string]any) string {
	if r.message == nil {
		return ""
	}
	value, err := expression.Evaluate(r.message, variables)
	if err != nil {
		return ""
	}
	said, _ := value.(types.String)
	return string(said)
}

func boolean(program cel.Program, variables map[string]any) (bool, error) {
	value, err := expression.Evaluate(program, variables)
	if err != nil {
		return false, err
	}
	is, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Errorf("got a value of type %s, want bool", value.Type().TypeName())
	}
	return bool(is), nil
}
