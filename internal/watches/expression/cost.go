package expression

import (
	"fmt"
	"math/bits"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// costLimit bounds one evaluation of one expression. To sort the names of a
// thousand objects takes a fifth of it, and all of it well under a second.
const costLimit = 250_000

// limits are those of every program.
func limits() []cel.ProgramOption {
	sorted := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType, cel.BoolType, cel.DurationType, cel.TimestampType, cel.StringType, cel.BytesType}
	trackers := make([]interpreter.CostTrackerOption, 0, 2*len(sorted))
	// CEL counts a sort as if it compared each with each.
	for _, t := range sorted {
		for _, call := range []string{"sort", "sortByAssociatedKeys"} {
			trackers = append(trackers, interpreter.OverloadCostTracker(fmt.Sprintf("list_%s_%s", t.TypeName(), call), sorting))
		}
	}
	return []cel.ProgramOption{cel.CostTrackerOptions(trackers...), cel.CostLimit(costLimit)}
}

// sorting is n·log(n), as for every sort that is any good.
func sorting(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(1)
	if list, ok := args[0].(traits.Sizer); ok {
		if size, ok := list.Size().(types.Int); ok && size > 0 {
			n := uint64(size)
			cost += n * uint64(bits.Len64(n))
		}
	}
	return &cost
}
