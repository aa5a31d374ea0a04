package bundle

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
)

// descriptor describes how consoles show a field.
type descriptor struct {
	Path         string   `json:"path"`
	DisplayName  string   `json:"displayName,omitempty"`
	Description  string   `json:"description,omitempty"`
	XDescriptors []string `json:"x-descriptors,omitempty"`
}

// Capabilities of consoles.
const (
	prefixUI         = "urn:alm:descriptor:com.tectonic.ui:"
	prefixKubernetes = "urn:alm:descriptor:io.kubernetes:"

	showConditions = "urn:alm:descriptor:io.kubernetes.conditions"
	showPhase      = "urn:alm:descriptor:io.kubernetes.phase"
	showLink       = "urn:alm:descriptor:org.w3:link"
	showText       = "urn:alm:descriptor:text"
)

type props = apiextensionsv1.JSONSchemaProps

// specDescriptors describes the fields of the spec: all top-level fields, and the nested
// fields that forms can edit.
func specDescriptors(version apiextensionsv1.CustomResourceDefinitionVersion) []descriptor {
	replicas := ""
	if version.Subresources != nil && version.Subresources.Scale != nil {
		replicas = strings.TrimPrefix(version.Subresources.Scale.SpecReplicasPath, ".spec.")
	}
	var found []descriptor
	var walk func(parent string, schema props)
	walk = func(parent string, schema props) {
		for _, name := range sortedKeys(schema.Properties) {
			// Paths do not support names with dots or brackets.
			if strings.ContainsAny(name, ".[]") {
				continue
			}
			field, path := schema.Properties[name], parent+name
			show := input(name, path, replicas, field)
			if parent == "" || len(show) > 0 {
				found = append(found, describe(path, field, show))
			}
			if len(show) == 0 {
				walk(path+".", field)
			}
		}
	}
	walk("", version.Schema.OpenAPIV3Schema.Properties["spec"])
	return found
}

func describe(path string, field props, show []string) descriptor {
	name := cmp.Or(field.Title, words(strings.ReplaceAll(path, ".", " ")))
	return descriptor{Path: path, DisplayName: name, Description: field.Description, XDescriptors: show}
}

var (
	secretName = regexp.MustCompile(`(?i)secret[-_]?(name|ref)$`)
	someSecret = regexp.MustCompile(`(?i)secret$`)
	// secretKind matches the kind in descriptions.
	secretKind     = regexp.MustCompile(`\bSecrets?\b`)
	configMapName  = regexp.MustCompile(`(?i)config[-_]?map([-_]?(name|ref))?$`)
	serviceAccount = regexp.MustCompile(`(?i)service[-_]?account[-_]?name$`)
	password       = regexp.MustCompile(`(?i)pass(word|wd|phrase)$`)
)

// input returns the descriptor of the form control for a field, or nothing if forms cannot
// edit the field.
func input(name, path, replicas string, field props) []string {
	switch {
	case path == replicas:
		return []string{prefixUI + "podCount"}
	case field.Type == "boolean":
		return []string{prefixUI + "booleanSwitch"}
	case len(field.Enum) > 0:
		return choices(field)
	case field.XIntOrString:
		return []string{prefixUI + "text"}
	case field.Type == "integer", field.Type == "number":
		return []string{prefixUI + "number"}
	case field.Type == "string":
		return []string{text(name, field)}
	case field.Type == "object" && isResources(field):
		return []string{prefixUI + "resourceRequirements"}
	}
	return nil
}

func text(name string, field props) string {
	switch {
	case secretName.MatchString(name), someSecret.MatchString(name) && secretKind.MatchString(field.Description):
		return prefixKubernetes + "Secret"
	case configMapName.MatchString(name):
		return prefixKubernetes + "ConfigMap"
	case serviceAccount.MatchString(name):
		return prefixKubernetes + "ServiceAccount"
	case field.Format == "password", password.MatchString(name):
		return prefixUI + "password"
	}
	return prefixUI + "text"
}

// choices returns the descriptors of the values of an enum.
func choices(field props) []string {
	values := make([]string, 0, len(field.Enum))
	for _, raw := range field.Enum {
		var value any
		if json.Unmarshal(raw.Raw, &value) != nil || value == nil || value == "" {
			continue
		}
		if text, ok := value.(string); ok {
			values = append(values, text)
		} else {
			values = append(values, string(raw.Raw))
		}
	}
	if slices.Equal(slices.Sorted(slices.Values(values)), []string{"Always", "IfNotPresent", "Never"}) {
		return []string{prefixUI + "imagePullPolicy"}
	}
	for i, value := range values {
		values[i] = prefixUI + "select:" + value
	}
	return values
}

// isResources reports whether a field holds the requests and limits of a container.
func isResources(field props) bool {
	_, requests := field.Properties["requests"]
	_, limits := field.Properties["limits"]
	return requests && limits
}

// reported lists the fields of every status that consoles show.
var reported = []string{"state", "conditions", "release.chart", "release.revision", "resources.ready", "resources.total"}

// statusDescriptors describes the kind's own status fields, then the fields of every
// status.
func statusDescriptors(version apiextensionsv1.CustomResourceDefinitionVersion, kind *catalog.Kind) []descriptor {
	status := version.Schema.OpenAPIV3Schema.Properties["status"]
	var paths []string
	if kind != nil {
		paths = append(kind.Fields.Names(), reported...)
	} else {
		paths = sortedKeys(status.Properties)
	}
	var found []descriptor
	for _, path := range paths {
		if field, exists := fieldAt(status, path); exists {
			found = append(found, describe(path, field, output(path, field)))
		}
	}
	return found
}

// output returns the descriptor of a status field, or nothing for lists and objects.
func output(path string, field props) []string {
	switch {
	case path == "conditions":
		return []string{showConditions}
	case path == "phase" && field.Type == "string":
		return []string{showPhase}
	case field.Format == "uri", field.Format == "url":
		return []string{showLink}
	case slices.Contains([]string{"string", "integer", "number", "boolean"}, field.Type):
		return []string{showText}
	}
	return nil
}

func fieldAt(schema props, path string) (props, bool) {
	for name := range strings.SplitSeq(path, ".") {
		field, exists := schema.Properties[name]
		if !exists {
			return props{}, false
		}
		schema = field
	}
	return schema, true
}

// words converts a name to a title: existingSecret becomes Existing Secret.
func words(name string) string {
	name = acronymEnd.ReplaceAllString(name, "$1 $2")
	name = camelCase.ReplaceAllString(name, "$1 $2")
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("-_ ", r) })
	for i, part := range parts {
		first, size := utf8.DecodeRuneInString(part)
		parts[i] = string(unicode.ToUpper(first)) + part[size:]
	}
	return strings.Join(parts, " ")
}

var (
	acronymEnd = regexp.MustCompile(`(\p{Lu})(\p{Lu}\p{Ll})`)
	camelCase  = regexp.MustCompile(`([\p{Ll}\p{Nd}])(\p{Lu})`)
)

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
