package crd

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// notWord is the pattern of texts that YAML may read as a number or null, if a template
// writes them without quotes: all but words. It also matches templates.
const notWord = `^\s*([^A-Za-z\s]|[nN]|$)`

// kubernetesType returns the schema of a Go type of Kubernetes, to a depth. It accepts
// everything that the API server accepts in a field of the type, and fields that a newer
// API server has. With templated, the chart executes texts in the value as templates, so
// that a template is accepted instead of any value.
func (i *inferrer) kubernetesType(t reflect.Type, templated bool, depth int) apiextensionsv1.JSONSchemaProps {
	i.nodes++
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := anything()
	switch {
	case i.nodes > maxNodes || depth < 0:
	case t == reflect.TypeFor[intstr.IntOrString]():
		s = apiextensionsv1.JSONSchemaProps{XIntOrString: true, Nullable: true}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		// The type has a form of its own. A quantity, for example, can be any number.
	case t.Kind() == reflect.Struct:
		s = object("", i.fields(t, templated, depth))
		s.Nullable, s.XPreserveUnknownFields = true, new(true)
	case t.Kind() == reflect.Map:
		entry := i.kubernetesType(t.Elem(), templated, depth-1)
		s = object("", nil)
		s.Nullable = true
		if isAnything(entry) {
			s.XPreserveUnknownFields = new(true)
		} else {
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &entry}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		s = list("", i.kubernetesType(t.Elem(), templated, depth-1))
		s.XListType, s.Nullable = nil, true
	case t.Kind() == reflect.String:
		s = apiextensionsv1.JSONSchemaProps{Type: "string", Nullable: true}
	case t.Kind() == reflect.Bool && !templated:
		s = apiextensionsv1.JSONSchemaProps{Type: "boolean", Nullable: true}
	case isInteger(t) && !templated:
		s = apiextensionsv1.JSONSchemaProps{Type: "integer", Nullable: true}
	}
	if templated && s.Type != "" && s.Type != "string" {
		// The value can be the text of a template.
		s.Type, s.XPreserveUnknownFields = "", new(true)
		s.AdditionalProperties = nil
	}
	return s
}

func isInteger(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return true
	}
	return false
}

// fields returns the schemas of the fields of a struct.
func (i *inferrer) fields(t reflect.Type, templated bool, depth int) props {
	var docs map[string]string
	if documented, ok := reflect.TypeAssert[interface{ SwaggerDoc() map[string]string }](reflect.Zero(t)); ok {
		docs = documented.SwaggerDoc()
	}
	all := props{}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch name {
		case "-":
		case "":
			if strings.Contains(options, "inline") || field.Anonymous {
				maps.Copy(all, i.fields(field.Type, templated, depth))
			}
		default:
			s := i.kubernetesType(field.Type, templated, depth-1)
			s.Description = firstSentence(docs[name])
			all[name] = s
		}
	}
	return all
}

// firstSentence shortens the documentation of a field of Kubernetes.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	for _, word := range []string{"Required", "Optional"} {
		for _, end := range []string{": ", ". "} {
			text = strings.TrimPrefix(text, word+end)
		}
	}
	for at := range len(text) {
		if strings.HasPrefix(text[at:], ". ") && !strings.HasSuffix(text[:at], "e.g") && !strings.HasSuffix(text[:at], "i.e") {
			return text[:at+1]
		}
	}
	return text
}
