package kindstatus

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// The variables of an expression.
const (
	varRelease   = "release"
	varValues    = "values"
	varResources = "resources"
	varObserved  = "observed"
)

// longest is the longest list that lists.range makes.
const longest = 10_000

// environment is what expressions of every kind are compiled in.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(longest)), ext.Sets(), ext.Math(), ext.Bindings(),
		// 1 is 1.0 in JSON.
		cel.CrossTypeNumericComparisons(true),
		withStructs,
		inOrder,
		cel.Variable(varRelease, cel.ObjectType(typeRelease)),
		cel.Variable(varValues, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varResources, cel.ListType(cel.ObjectType(typeResource))),
		cel.Variable(varObserved, cel.MapType(cel.StringType, cel.ListType(cel.DynType))),
	)
})
