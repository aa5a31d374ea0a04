package health

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Rules are the health rules of an entry in watches.yaml, by the kind of the objects.
type Rules map[schema.GroupKind]*Rule

// Rule is a compiled health rule. It is safe for concurrent use.
type Rule struct {
	ready, failed, message cel.Program
	// ownGeneration is true if the rule itself reads observedGeneration.
	ownGeneration bool
}

// Compile compiles the expressions of a rule and checks their types. The arguments failed
// and message may be empty. It returns all errors.
func Compile(ready, failed, message string) (*Rule, []expression.Error) {
	rule := &Rule{ownGeneration: strings.Contains(ready+failed, "observedGeneration")}
	var errs []expression.Error
	field := func(name, text string, resultType *cel.Type) (program cel.Program) {
		if text == "" {
			return nil
		}
		program, err := compile(text, resultType)
		if err != nil {
			errs = append(errs, expression.Error{Field: name, Message: err.Error()})
		}
		return program
	}
	rule.ready, rule.failed = field("ready", ready, cel.BoolType), field("failed", failed, cel.BoolType)
	rule.message = field("message", message, cel.StringType)
	if len(errs) > 0 {
		return nil, errs
	}
	return rule, nil
}

func compile(text string, resultType *cel.Type) (cel.Program, error) {
	return expression.Compile(expression.ObjectEnvironment, text, func(ast *cel.Ast) error {
		// CEL does not know the types of the fields of an object.
		if actual := ast.OutputType(); !actual.IsExactType(resultType) && !actual.IsExactType(cel.DynType) {
			return fmt.Errorf("got an expression of type %s, want %s", actual, resultType)
		}
		return nil
	})
}

// evaluate evaluates the rule. An expression that cannot be evaluated, usually because a
// field does not exist yet, never makes the object fail.
func (r *Rule) evaluate(s subject) Result {
	if behind := s.outdated(); behind.decided() && !r.ownGeneration {
		return behind
	}
	variables := map[string]any{expression.Self: s.Object}
	if r.failed != nil {
		if has, err := boolean(r.failed, variables); err == nil && has {
			return failed(ReasonRuleFailed, cmp.Or(r.explanation(variables), "health rule: failed is true"))
		}
	}
	result := Result{Ready: true}
	if is, err := boolean(r.ready, variables); err != nil {
		message := api.Truncate(fmt.Sprintf("health rule: cannot evaluate ready yet: %v", err), maxMessage)
		result = Result{OpenEnded: true, Reason: ReasonRuleNotEvaluated, Message: message}
	} else if !is {
		result = progressing(ReasonRuleNotReady, cmp.Or(r.explanation(variables), "health rule: ready is false"))
	}
	result.Reported = reported(s.status())
	return result
}

// explanation returns the message of the rule, or "".
func (r *Rule) explanation(variables map[string]any) string {
	if r.message == nil {
		return ""
	}
	// An expression that fails has no value.
	value, _ := expression.Evaluate(r.message, variables)
	message, _ := value.(types.String)
	return string(message)
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
