package operatorchart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// header is the first line of every generated file.
const header = "{{- /* Generated from config/ by \"make generate\": do not edit. */ -}}\n"

// generator collects the templates.
type generator struct {
	builds

	files map[string][]string
}

// Generate returns the generated templates by their paths in the chart.
func Generate() (map[string]string, error) {
	b, err := buildAll()
	if err != nil {
		return nil, err
	}
	g := generator{builds: b, files: map[string][]string{}}
	for _, object := range slices.Concat(b.standard, b.monitoring, b.approval) {
		if err := g.add(object, condition(object)); err != nil {
			return nil, err
		}
	}
	for _, object := range b.chartKinds {
		if find(b.standard, object) == nil {
			if err := g.add(object, and(condition(object), ".Values.chartKinds.enabled")); err != nil {
				return nil, err
			}
		}
	}
	if err := g.addNamespaced(); err != nil {
		return nil, err
	}
	generated := map[string]string{}
	for path, documents := range g.files {
		generated[path] = header + strings.Join(documents, "")
	}
	return generated, nil
}

// add adds an object that is rendered on a condition, which can be empty.
func (g *generator) add(object *unstructured.Unstructured, condition string) error {
	if object.GetKind() == "Namespace" {
		// Helm creates the namespace of the release.
		return nil
	}
	text, err := g.document(object, "$.Release.Namespace")
	if err != nil {
		return err
	}
	if condition != "" {
		text = fmt.Sprintf("{{- if %s }}\n%s{{- end }}\n", condition, text)
	}
	g.files[path(object)] = append(g.files[path(object)], text)
	return nil
}

// addNamespaced adds the objects that replace the ClusterRole and its binding in each
// watched namespace.
func (g *generator) addNamespaced() error {
	var documents strings.Builder
	for _, object := range g.namespaced {
		if find(g.standard, object) != nil {
			continue
		}
		text, err := g.document(object, "$namespace")
		if err != nil {
			return err
		}
		documents.WriteString(text)
	}
	g.files["templates/rbac.yaml"] = append(g.files["templates/rbac.yaml"],
		"{{- range $namespace := .Values.watchNamespaces }}\n"+documents.String()+"{{- end }}\n")
	return nil
}

// path returns the file of an object.
func path(object *unstructured.Unstructured) string {
	switch kind := object.GetKind(); {
	case kind == "CustomResourceDefinition":
		return "templates/crds/" + object.GetName() + ".yaml"
	case userRole.MatchString(object.GetName()):
		return "templates/user-roles.yaml"
	case strings.Contains(kind, "Role"):
		return "templates/rbac.yaml"
	default:
		return "templates/" + strings.ToLower(kind) + ".yaml"
	}
}

// and combines conditions.
func and(conditions ...string) string {
	conditions = slices.DeleteFunc(conditions, func(c string) bool { return c == "" })
	if len(conditions) < 2 {
		return cmp.Or(conditions...)
	}
	return "and (" + strings.Join(conditions, ") (") + ")"
}
