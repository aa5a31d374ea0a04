package kindstatus

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/chartwright/chartwright/internal/api"
)

// Input holds the variables of the expressions.
type Input struct {
	// Release is the newest revision; without one its number is 0.
	Release api.ReleaseStatus
	// Values returns the values of the release: the chart's defaults merged with all
	// sources. It is called at most once, and only if an expression reads values. Nil means
	// that the values are not available now.
	Values    func() map[string]any
	Resources []Resource
	// Observed holds a list of objects for each entry of observe. They must not be changed.
	Observed map[string]any
	// Unobserved is the reason if the objects of an entry are not available.
	Unobserved map[string]string
	// Objects holds the objects of the release by kind, as the expressions name it, and by
	// name. Only outputs read them. They must not be changed. An object may be a func() any,
	// which is called when an expression reads the object, and which may return a *ReadError.
	Objects map[string]any
	// Redact removes secrets from a text; nil removes nothing.
	Redact func(string) string
	// Sensitive results keep their secrets. Redact then applies to failures only.
	Sensitive bool
}

// ReadError is the reason why an object could not be read. It must not contain secrets: it is
// reported for sensitive outputs, too.
type ReadError struct{ Message string }

func (e *ReadError) Error() string { return e.Message }

// Resource is one managed resource.
type Resource struct {
	// Group is the API group of the kind, empty for the core group.
	Group     string
	Kind      string
	Namespace string
	Name      string
	Ready     bool
	// Reason and Message explain why the resource is not ready. Reason is one word.
	Reason  string
	Message string
}

// releaseFields and fields return the map that expressions read.

func releaseFields(r api.ReleaseStatus) map[string]any {
	return map[string]any{
		"name": r.Name, "namespace": r.Namespace, "revision": r.Revision, "status": r.Status,
		"chart": r.Chart, "chartVersion": r.ChartVersion, "appVersion": r.AppVersion,
	}
}

func (r Resource) fields() map[string]any {
	return map[string]any{
		"group": r.Group, "kind": r.Kind, "namespace": r.Namespace, "name": r.Name,
		"ready": r.Ready, "reason": r.Reason, "message": r.Message,
	}
}

// variables returns the values of the variables.
func (in Input) variables() map[string]any {
	resources := make([]any, len(in.Resources))
	for i, r := range in.Resources {
		resources[i] = r.fields()
	}
	found := map[string]any{varRelease: releaseFields(in.Release), varResources: resources, varObserved: in.Observed, varObjects: in.Objects}
	if in.Values != nil {
		// CEL calls it when an expression reads it.
		found[varValues] = sync.OnceValue(func() any { return in.Values() })
	}
	return found
}

const (
	typeRelease  = "chartwright.Release"
	typeResource = "chartwright.Resource"
)

// fieldTypes are the fields of the types. With them the compiler finds misspelled
// fields.
var fieldTypes = map[string]map[string]*types.Type{
	typeRelease:  typesOf(releaseFields(api.ReleaseStatus{})),
	typeResource: typesOf(Resource{}.fields()),
}

func typesOf(fields map[string]any) map[string]*types.Type {
	found := make(map[string]*types.Type, len(fields))
	for name, value := range fields {
		found[name], _ = types.DefaultTypeAdapter.NativeToValue(value).Type().(*types.Type)
	}
	return found
}

// typeProvider adds the types of release and resources to CEL's types. The evaluated values
// are maps.
type typeProvider struct{ types.Provider }

func withStructs(env *cel.Env) (*cel.Env, error) {
	return cel.CustomTypeProvider(typeProvider{env.CELTypeProvider()})(env)
}

// FindStructType returns a type by its name.
func (s typeProvider) FindStructType(name string) (*types.Type, bool) {
	if _, known := fieldTypes[name]; known {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldNames returns the fields of a type.
func (s typeProvider) FindStructFieldNames(name string) ([]string, bool) {
	if fields, known := fieldTypes[name]; known {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return s.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field.
func (s typeProvider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
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
