package annotations

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Dependency is an item of the annotation depends-on.
type Dependency struct {
	schema.GroupKind
	// Namespace is empty if the item does not name it.
	Namespace string
	Name      string
}

// String returns the item as ParseDependsOn reads it.
func (d Dependency) String() string {
	if d.Namespace == "" {
		return d.GroupKind.String() + "/" + d.Name
	}
	return d.GroupKind.String() + "/" + d.Namespace + "/" + d.Name
}

// maxDependencies limits the number of items, because each item can make the operator check
// the custom resource again.
const maxDependencies = 64

// ParseDependsOn parses "<kind>.<group>/<name>, <kind>.<group>/<namespace>/<name>, …".
// Kinds of the core group have no group. The error names the item.
func ParseDependsOn(value string) ([]Dependency, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	items := strings.Split(value, ",")
	if len(items) > maxDependencies {
		return nil, fmt.Errorf("%d items: expected at most %d", len(items), maxDependencies)
	}
	list := make([]Dependency, len(items))
	for i, item := range items {
		item = strings.TrimSpace(item)
		parts := strings.Split(item, "/")
		last := len(parts) - 1
		d := Dependency{GroupKind: schema.ParseGroupKind(parts[0]), Name: parts[last]}
		if last == 2 {
			d.Namespace = parts[1]
		}
		if last < 1 || last > 2 || !d.valid() || last == 2 && len(validation.IsDNS1123Label(d.Namespace)) > 0 {
			return nil, fmt.Errorf("%q: expected <kind>.<group>/<name> or <kind>.<group>/<namespace>/<name>, separated by commas", item)
		}
		list[i] = d
	}
	return list, nil
}

// valid reports whether the API server accepts the names of kind, group and object.
func (d Dependency) valid() bool {
	return len(validation.IsDNS1035Label(strings.ToLower(d.Kind))) == 0 && len(validation.IsDNS1123Subdomain(d.Name)) == 0 &&
		(d.Group == "" || len(validation.IsDNS1123Subdomain(d.Group)) == 0)
}
