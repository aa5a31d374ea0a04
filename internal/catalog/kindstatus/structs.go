package kindstatus

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

const (
	typeRelease  = "chartwright.Release"
	typeResource = "chartwright.Resource"
)

// fieldTypes are the fields of the types, so that a misspelled one is found
// when an expression is compiled.
var fieldTypes = map[string]map[string]*types.Type{
	typeRelease: {
		"name": types.StringType, "namespace": types.StringType, "revision": types.IntType, "status": types.StringType,
		"chart": types.StringType, "chartVersion": types.StringType, "appVersion": types.StringType,
	},
	typeResource: {
		"group": types.StringType, "kind": types.StringType, "namespace": types.StringType, "name": types.StringType,
		"ready": types.BoolType, "reason": types.StringType, "message": types.StringType,
	},
}

// structs knows these types beside CEL's own. What is evaluated are maps.
type structs struct{ types.Provider }

func withStructs(env *cel.Env) (*cel.Env, error) {
	return cel.CustomTypeProvider(structs{env.CELTypeProvider()})(env)
}

// FindStructType returns a type by its name.
func (s structs) FindStructType(name string) (*types.Type, bool) {
	if _, known := fieldTypes[name]; known {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldNames returns the fields of a type.
func (s structs) FindStructFieldNames(name string) ([]string, bool) {
	if fields, known := fieldTypes[name]; known {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return s.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field.
func (s structs) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, known := fieldTypes[name]
	if !known {
		return s.Provider.FindStructFieldType(name, field)
	}
	found, ok := fields[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: found}, true
}
