package kindstatus

import (
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/chartwright/chartwright/internal/watches/expression"
)

// The variables of an expression.
const (
	varRelease   = "release"
	varValues    = "values"
	varResources = "resources"
	varObserved  = "observed"
)

// environment is what expressions of every kind are compiled in.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return expression.Environment(
		withStructs,
		cel.Variable(varRelease, cel.ObjectType(typeRelease)),
		cel.Variable(varValues, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(varResources, cel.ListType(cel.ObjectType(typeResource))),
		cel.Variable(varObserved, cel.MapType(cel.StringType, cel.ListType(cel.DynType))),
	)
})
