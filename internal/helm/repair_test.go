package helm

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/apply"
)

// TestFilterManifest checks that only documents that may contain a named object are
// parsed, or all without names.
func TestFilterManifest(t *testing.T) {
	const (
		config = "---\n# Source: a/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {of: Service}\n"
		secret = "---\n# Source: a/templates/b.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: web\n"
		list   = "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: listed}}\n"
	)
	of := func(kind, name string) apply.Key { return apply.Key{Kind: kind, Namespace: "default", Name: name} }
	for _, test := range []struct {
		name  string
		named sets.Set[apply.Key]
		want  []string
	}{
		{"none", nil, []string{config, secret, list}},
		{"the first", sets.New(of("ConfigMap", "a")), []string{config}},
		{"another", sets.New(of("Secret", "web")), []string{secret}},
		{"one in a list", sets.New(of("Secret", "listed")), []string{list}},
		{"two", sets.New(of("Secret", "web"), of("ConfigMap", "a")), []string{config, secret}},
		{"one whose kind is in another document, too", sets.New(of("Service", "a")), []string{config}},
		{"a missing object", sets.New(of("Secret", "nowhere")), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := filterManifest(config+secret+list, test.named)
			equal(t, "the documents", documents(strings.Join(test.want, "")), documents(got))
		})
	}
}

func documents(manifest string) []string {
	found := []string{}
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		if document = strings.TrimSpace(document); document != "" {
			found = append(found, document)
		}
	}
	return found
}

// YAML can write a name in unusual ways.
func TestRepair_QuotedName(t *testing.T) {
	w := newWorld(t)
	written := `
apiVersion: v1
kind: "Config\x4dap"
metadata: {name: "o\x64d"}
`
	r := w.request(small().with("templates/odd.yaml", written).load(t), "one", valuesOf())
	w.must(w.helm.Install(t.Context(), r))
	w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "odd", metav1.DeleteOptions{}))
	odd := apply.Key{Kind: "ConfigMap", Namespace: w.namespace, Name: "odd"}
	repaired, err := w.helm.Repair(t.Context(), r, map[apply.Key]bool{odd: true})
	if err != nil || len(repaired) != 1 || repaired[0].Key != odd || !repaired[0].Recreated {
		t.Errorf("%v, %v", repaired, err)
	}
	if !w.expects() {
		t.Error("the expected objects were forgotten")
	}
}
