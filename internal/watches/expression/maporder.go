package expression

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// sortedMapAdapter creates maps that are iterated in the order of their keys.
type sortedMapAdapter struct{ types.Adapter }

func sortedMaps(env *cel.Env) (*cel.Env, error) {
	return cel.CustomTypeAdapter(sortedMapAdapter{env.CELTypeAdapter()})(env)
}

// NativeToValue converts a Go value to a CEL value. CEL also calls it for the elements of
// maps and lists.
func (o sortedMapAdapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case func() any:
		// A value in a map that is computed when an expression reads it.
		return o.NativeToValue(v())
	case error:
		return types.WrapErr(v)
	case map[string]any:
		return sortedMap{types.NewStringInterfaceMap(o, v), o}
	case map[ref.Val]ref.Val:
		return sortedMap{types.NewRefValMap(o, v), o}
	case []any:
		return types.NewDynamicList(o, v)
	case []ref.Val:
		return types.NewRefValList(o, v)
	default:
		return o.Adapter.NativeToValue(value)
	}
}

// sortMapLiterals sorts map literals in expressions, which do not pass through the adapter.
func sortMapLiterals(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	made, ok := step.(interpreter.InterpretableConstructor)
	if !ok || made.Type() != types.MapType {
		return step, nil
	}
	return sortedLiteral{made}, nil
}

type sortedLiteral struct {
	interpreter.InterpretableConstructor
}

// Exec returns the map.
func (l sortedLiteral) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := l.InterpretableConstructor.Exec(frame)
	if m, ok := value.(traits.Mapper); ok {
		return sortedMap{m, sortedMapAdapter{types.DefaultTypeAdapter}}
	}
	return value
}

// Eval returns the map.
func (l sortedLiteral) Eval(activation interpreter.Activation) ref.Val {
	return l.Exec(interpreter.AsFrame(activation))
}

// sortedMap is a map that is iterated in the order of its keys.
type sortedMap struct {
	traits.Mapper
	adapter types.Adapter
}

// Iterator returns the keys in order.
func (m sortedMap) Iterator() traits.Iterator {
	keys := make([]ref.Val, 0, int(m.Size().(types.Int))) //nolint:errcheck // the size of a map is an Int
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compare)
	return types.NewRefValList(m.adapter, keys).Iterator()
}

// compare orders keys of the same type by value, and other keys by type.
func compare(a, b ref.Val) int {
	if order := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); order != 0 {
		return order
	}
	comparer, ok := a.(traits.Comparer)
	if !ok {
		return 0
	}
	order, ok := comparer.Compare(b).(types.Int)
	if !ok {
		return 0
	}
	return int(order)
}
