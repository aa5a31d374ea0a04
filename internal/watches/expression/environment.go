package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// longest is the longest list that lists.range returns.
const longest = 10_000

// Environment returns an environment with the functions of every expression and
// with what the options add: variables and types.
func Environment(options ...cel.EnvOption) (*cel.Env, error) {
	shared := make([]cel.EnvOption, 0, 8+len(options))
	shared = append(shared,
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(longest)), ext.Sets(), ext.Math(), ext.Bindings(),
		// 1 is 1.0 in JSON.
		cel.CrossTypeNumericComparisons(true),
		inOrder,
	)
	return cel.NewEnv(append(shared, options...)...)
}
