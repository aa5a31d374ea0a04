package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReadEdit(t *testing.T) {
	kind := schema.GroupKind{Group: "app.example.com", Kind: "PodSet"}
	const head = "apiVersion: app.example.com/v1\nkind: PodSet\n"
	for _, test := range []struct {
		name, text string
		want       map[string]any
		err        string
	}{
		{"spec", "replicas: 3\n", map[string]any{"replicas": int64(3)}, ""},
		{"JSON", `{"replicas": 3.0}`, map[string]any{"replicas": int64(3)}, ""},
		{"custom resource", head + "metadata: {name: web}\nspec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"only the field spec", "spec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"without a name", head + "spec: {replicas: 3}\n", map[string]any{"replicas": int64(3)}, ""},
		{"other API version", "apiVersion: app.example.com/v1alpha1\nkind: PodSet\n", map[string]any{}, ""},
		{"document separators", "---\nreplicas: 3\n---\n", map[string]any{"replicas": int64(3)}, ""},
		{"empty", "# nothing\n", map[string]any{}, ""},
		{"other kind", "apiVersion: v1\nkind: Pod\n", nil, "found kind Pod: expected PodSet.app.example.com"},
		{"other name", head + "metadata: {name: api}\n", nil, "found PodSet api: expected web"},
		{"two documents", "a: b\n---\nc: d\n", nil, "several documents"},
		{"list", "- a\n", nil, "expected a custom resource or its spec"},
		{"duplicate key", "a: b\na: c\n", nil, `"a" already set`},
		{"spec is a number", head + "spec: 3\n", nil, "want an object"},
	} {
		edited, err := readEdit([]byte(test.text), kind, "web")
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(map[string]any{"spec": test.want}, edited.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
