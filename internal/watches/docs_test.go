package watches

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDocsWatches: docs/reference/watches.md, or a page of one key that it leads to, names
// every key that the file may have.
func TestDocsWatches(t *testing.T) {
	var text strings.Builder
	for _, page := range []string{"reference/watches.md", "guides/rollout.md", "guides/values.md", "reference/rbac.md"} {
		data, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(data)
	}
	keys := map[string]bool{}
	keysOf(reflect.TypeFor[Watch](), keys)
	for key := range keys {
		if !strings.Contains(text.String(), "`"+key+"`") && !strings.Contains(text.String(), key+": ") && !strings.Contains(text.String(), key+":\n") {
			t.Errorf("no page names the key %s", key)
		}
	}
	if len(keys) < 40 {
		t.Errorf("only %d keys were found", len(keys))
	}
}

// keysOf collects the keys of the structures of a watches entry. The keys of a printer
// column are those of a CRD.
func keysOf(structure reflect.Type, keys map[string]bool) {
	for structure.Kind() == reflect.Pointer || structure.Kind() == reflect.Slice {
		structure = structure.Elem()
	}
	packages := []string{reflect.TypeFor[Watch]().PkgPath(), reflect.TypeFor[rbacv1.PolicyRule]().PkgPath(), reflect.TypeFor[apiextensionsv1.CustomResourceSubresourceScale]().PkgPath()}
	if structure == reflect.TypeFor[apiextensionsv1.CustomResourceColumnDefinition]() || structure.Kind() != reflect.Struct || !slices.Contains(packages, structure.PkgPath()) {
		return
	}
	for field := range structure.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "-" || !field.IsExported() {
			continue
		}
		if key != "" {
			keys[key] = true
		}
		keysOf(field.Type, keys)
	}
}
