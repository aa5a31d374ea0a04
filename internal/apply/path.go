package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SplitPath splits the path of a request for objects. The rest begins with the resource, and
// continues with the name of an object. It is empty for other paths.
func SplitPath(path string) (gv schema.GroupVersion, namespace string, rest []string) {
	rest = strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(rest) > 2 && rest[0] == "api":
		gv.Version, rest = rest[1], rest[2:]
	case len(rest) > 3 && rest[0] == "apis":
		gv.Group, gv.Version, rest = rest[1], rest[2], rest[3:]
	default:
		return gv, "", nil
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	return gv, namespace, rest
}
