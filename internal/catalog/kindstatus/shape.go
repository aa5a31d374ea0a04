package kindstatus

import "github.com/google/cel-go/common/types"

// Shape is the type of what an expression gives, by the words of JSON Schema.
type Shape struct {
	// Type is empty where anything may come.
	Type Type
	// Format says more of a text, as in JSON Schema.
	Format string
	// Item is the shape of what a list or a map holds; nil elsewhere.
	Item *Shape
}

// Type is a type of JSON Schema.
type Type string

// Types.
const (
	TypeString  Type = "string"
	TypeInteger Type = "integer"
	TypeNumber  Type = "number"
	TypeBoolean Type = "boolean"
	TypeList    Type = "array"
	TypeMap     Type = "object"
)

// shapeOf returns the shape of a type of CEL.
func shapeOf(t *types.Type) Shape {
	if t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName() {
		return shapeOf(t.Parameters()[0])
	}
	switch t.Kind() {
	case types.StringKind, types.DurationKind:
		return Shape{Type: TypeString}
	case types.TimestampKind:
		return Shape{Type: TypeString, Format: "date-time"}
	case types.BytesKind:
		return Shape{Type: TypeString, Format: "byte"}
	case types.IntKind, types.UintKind:
		return Shape{Type: TypeInteger}
	case types.DoubleKind:
		return Shape{Type: TypeNumber}
	case types.BoolKind:
		return Shape{Type: TypeBoolean}
	case types.ListKind:
		item := shapeOf(t.Parameters()[0])
		return Shape{Type: TypeList, Item: &item}
	case types.MapKind:
		// Keys become texts.
		item := shapeOf(t.Parameters()[1])
		return Shape{Type: TypeMap, Item: &item}
	case types.StructKind:
		return Shape{Type: TypeMap, Item: &Shape{}}
	default:
		return Shape{}
	}
}
