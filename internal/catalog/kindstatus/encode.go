package kindstatus

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/utils/ptr"
)

// Approximate limits in bytes. The operator keeps the status of all custom resources in memory.
const (
	// maxResult limits one result, and maxStatus all fields or outputs of a custom resource
	// together.
	maxResult = 128 << 10
	maxStatus = 32 << 10
)

var (
	errTooLarge       = fmt.Errorf("the result is larger than %d KiB", maxResult>>10)
	errStatusTooLarge = fmt.Errorf("the fields up to this one are larger than %d KiB", maxStatus>>10)
	// errSecret is for a number. In a string only the secret is redacted.
	errSecret = errors.New("the result is a number from a Secret")
)

// encoder converts the result of an expression to JSON values: strings, int64, float64,
// booleans, lists and maps, as they are when they are decoded again.
type encoder struct {
	left int
	// perValue is what a value costs in addition to the length of a string.
	perValue int
	redact   func(string) string
}

// statusValue is about what a value takes in a status, as JSON.
const statusValue = 8

// Encode returns the JSON value of an expression's result, nil for null. It drops the keys of
// maps whose value is null.
func Encode(value ref.Val) (any, error) {
	e := &encoder{left: maxResult, perValue: 1, redact: func(text string) string { return text }}
	return e.encode(value, Shape{})
}

// encode returns nil for null, which is not part of a status.
func (e *encoder) encode(value ref.Val, as Shape) (any, error) {
	e.left -= e.perValue
	if e.left < 0 {
		return nil, errTooLarge
	}
	if optional, ok := value.(*types.Optional); ok {
		if !optional.HasValue() {
			return nil, nil
		}
		value = optional.GetValue()
	}
	switch v := value.(type) {
	case *types.Err:
		return nil, v
	case types.Null:
		return nil, nil
	case types.Bool:
		return checkType(as, TypeBoolean, "a boolean", bool(v))
	case types.Int:
		return e.number(as, int64(v))
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the result %d is too large", uint64(v))
		}
		return e.number(as, int64(v))
	case types.Double:
		return e.double(as, float64(v))
	case types.String:
		return e.text(as, string(v))
	case types.Bytes:
		return e.text(as, base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		return e.text(as, v.UTC().Format(time.RFC3339))
	case types.Duration:
		return e.text(as, v.String())
	case traits.Mapper:
		return e.mapping(v, as)
	case traits.Lister:
		return e.list(v, as)
	default:
		return nil, fmt.Errorf("the result is a %s, which JSON cannot represent", value.Type().TypeName())
	}
}

// checkType returns a value if its type matches the shape. CEL does not know all types
// before the evaluation.
func checkType(as Shape, actual Type, name string, value any) (any, error) {
	if as.Type != "" && as.Type != actual {
		return nil, fmt.Errorf("the result is %s, but the type in the CRD is %s", name, as.Type)
	}
	return value, nil
}

func (e *encoder) text(as Shape, text string) (any, error) {
	text = e.redact(text)
	if e.left -= len(text); e.left < 0 {
		return nil, errTooLarge
	}
	return checkType(as, TypeString, "a string", text)
}

// number encodes an integer, which is valid for integer and number types.
func (e *encoder) number(as Shape, whole int64) (any, error) {
	if text := strconv.FormatInt(whole, 10); e.redact(text) != text {
		return nil, errSecret
	}
	if as.Type == TypeNumber {
		return whole, nil
	}
	return checkType(as, TypeInteger, "a number", whole)
}

func (e *encoder) double(as Shape, number float64) (any, error) {
	switch {
	case math.IsNaN(number) || math.IsInf(number, 0):
		return nil, fmt.Errorf("the result is %v, which JSON cannot represent", number)
	case number == math.Trunc(number) && math.Abs(number) <= 1<<53:
		// JSON decodes it as an integer.
		return e.number(as, int64(number))
	}
	if text := fmt.Sprint(number); e.redact(text) != text {
		return nil, errSecret
	}
	return checkType(as, TypeNumber, "a number with a fraction", number)
}

func (e *encoder) list(list traits.Lister, as Shape) (any, error) {
	found := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		item, err := e.encode(it.Next(), ptr.Deref(as.Item, Shape{}))
		if err != nil {
			return nil, err
		}
		if item == nil && as.Item != nil && as.Item.Type != "" {
			return nil, fmt.Errorf("the result is a list with null, but the item type in the CRD is %s", as.Item.Type)
		}
		found = append(found, item)
	}
	return checkType(as, TypeList, "a list", found)
}

func (e *encoder) mapping(m traits.Mapper, as Shape) (any, error) {
	found := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, err := e.text(Shape{}, fmt.Sprint(key.Value()))
		if err != nil {
			return nil, err
		}
		value, err := e.encode(m.Get(key), ptr.Deref(as.Item, Shape{}))
		if err != nil {
			return nil, err
		}
		// In a patch null would remove the key.
		if value != nil {
			found[name.(string)] = value //nolint:errcheck // a string without a shape stays a string
		}
	}
	return checkType(as, TypeMap, "a map", found)
}

// Shape is the type of an expression's result, in terms of JSON Schema.
type Shape struct {
	// Type is empty if the type is unknown.
	Type Type
	// Format is the format of a string.
	Format string
	// Item is the shape of the elements of a list or map; nil for other types.
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

// shapeOf returns the shape of a CEL type.
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
		// Keys become strings.
		item := shapeOf(t.Parameters()[1])
		return Shape{Type: TypeMap, Item: &item}
	case types.StructKind:
		return Shape{Type: TypeMap, Item: &Shape{}}
	default:
		return Shape{}
	}
}
