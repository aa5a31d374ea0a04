package operatorchart

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// systemNamespace is the namespace in config/.
	systemNamespace = "chartwright-system"
	// certificateSecret is the Secret of config/metrics-certificate.
	certificateSecret = "chartwright-metrics-certificate" //nolint:gosec // the name of a Secret
	managerRole       = "chartwright-manager-role"
	managedBy         = "app.kubernetes.io/managed-by"
)

// userRole matches the names of roles of users for the kinds.
var userRole = regexp.MustCompile(`-(admin|editor|viewer)-role$`)

// condition returns the condition on which an object of config/ is rendered. Other objects
// are always rendered.
func condition(object *unstructured.Unstructured) string {
	name, kind := object.GetName(), object.GetKind()
	switch {
	case kind == "CustomResourceDefinition":
		return ".Values.crds.install"
	case kind == "ServiceAccount":
		return ".Values.serviceAccount.create"
	case kind == "NetworkPolicy":
		return ".Values.networkPolicy.enabled"
	case strings.HasPrefix(kind, "ValidatingAdmissionPolicy"):
		return ".Values.approvalPolicy.enabled"
	case kind == "ServiceMonitor":
		return "and .Values.metrics.enabled .Values.metrics.serviceMonitor.enabled"
	case kind == "PrometheusRule":
		return "and .Values.metrics.enabled .Values.metrics.prometheusRule.enabled"
	case userRole.MatchString(name):
		return ".Values.userRoles.create"
	case name == managerRole, name == "chartwright-manager-rolebinding":
		return "not .Values.watchNamespaces"
	case strings.Contains(name, "metrics"):
		return ".Values.metrics.enabled"
	default:
		return ""
	}
}

// document returns an object as a document of a template. Namespace is the expression for
// the namespace of the object.
func (g *generator) document(object *unstructured.Unstructured, namespace string) (string, error) {
	t := &template{}
	original, object := object, object.DeepCopy()
	if object.GetKind() == "CustomResourceDefinition" {
		annotations := map[string]string{"helm.sh/resource-policy": "keep"}
		maps.Copy(annotations, object.GetAnnotations())
		object.SetAnnotations(annotations)
	} else {
		if object.GetNamespace() != "" {
			object.SetNamespace(t.inline("{{ " + namespace + " | quote }}"))
		}
		replaceStrings(object.Object, t.namespace)
		setAccount(object, t.inline(`{{ include "chartwright.serviceAccountName" $ }}`))
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, managedBy)
	labels["chart"] = t.line(`{{- include "chartwright.labels" $ | nindent INDENT }}`)
	object.SetLabels(labels)

	var err error
	switch object.GetKind() {
	case "ServiceAccount":
		t.extend(object.Object, ".Values.serviceAccount.annotations", "metadata", "annotations")
		object.SetName(t.inline(`{{ include "chartwright.serviceAccountName" $ }}`))
	case "Deployment":
		err = g.deployment(t, object)
	case "ServiceMonitor":
		t.extend(object.Object, ".Values.metrics.serviceMonitor.labels", "metadata", "labels")
		err = g.serviceMonitor(t, object, original)
	case "PrometheusRule":
		t.extend(object.Object, ".Values.metrics.prometheusRule.labels", "metadata", "labels")
	case "Role", "ClusterRole":
		if object.GetName() == managerRole {
			rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
			rules = append(rules, t.line("{{- with $.Values.extraRules }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}"))
			err = unstructured.SetNestedSlice(object.Object, rules, "rules")
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", original.GetKind(), original.GetName(), err)
	}
	text, err := t.text(object.Object)
	return "---\n" + text, err
}

// namespace replaces the namespace of config/ in a string.
func (t *template) namespace(value string) string {
	switch {
	case value == systemNamespace:
		return t.inline("{{ $.Release.Namespace | quote }}")
	case value == certificateSecret:
		return t.inline("{{ $.Values.metrics.certificateSecret | quote }}")
	case strings.Contains(value, systemNamespace):
		return strings.ReplaceAll(value, systemNamespace, t.inline("{{ $.Release.Namespace }}"))
	default:
		return value
	}
}

// setAccount sets the service account in the subjects of a binding.
func setAccount(object *unstructured.Unstructured, account string) {
	subjects, _ := object.Object["subjects"].([]any)
	for _, subject := range subjects {
		if subject, isMap := subject.(map[string]any); isMap && subject["kind"] == "ServiceAccount" {
			subject["name"] = account
		}
	}
}

// extend adds the entries of a map in the values to a map, which is created.
func (t *template) extend(object map[string]any, values string, path ...string) {
	parent := object
	for _, key := range path[:len(path)-1] {
		parent, _ = parent[key].(map[string]any)
	}
	key := path[len(path)-1]
	if target, exists := parent[key].(map[string]any); exists {
		target["values"] = t.line("{{- with $%s }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}", values)
		return
	}
	parent[key] = t.line("{{- with $%s }}\n%s:\n{{- toYaml . | nindent INDENT2 }}\n{{- end }}", values, key)
}

// serviceMonitor makes the verification of the certificate depend on the values.
func (g *generator) serviceMonitor(t *template, object, original *unstructured.Unstructured) error {
	verified := find(g.certificate, original)
	endpoint, err := firstMap(object.Object, "spec", "endpoints")
	if err != nil {
		return err
	}
	with, err := firstMap(verified.DeepCopy().Object, "spec", "endpoints")
	if err != nil {
		return err
	}
	either, err := t.text(map[string]any{"tlsConfig": replaceStrings(with["tlsConfig"], t.namespace)})
	if err != nil {
		return err
	}
	or, err := t.text(map[string]any{"tlsConfig": endpoint["tlsConfig"]})
	if err != nil {
		return err
	}
	endpoint["tlsConfig"] = t.line("%s", "{{- if $.Values.metrics.certificateSecret }}\n"+either+"{{- else }}\n"+or+"{{- end }}")
	return nil
}

// mapAt returns a map in an object, which can be changed.
func mapAt(object map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		next, isMap := object[key].(map[string]any)
		if !isMap {
			return nil, fmt.Errorf("%s: want a map", strings.Join(path, "."))
		}
		object = next
	}
	return object, nil
}

// firstMap returns the first map of a list, which can be changed.
func firstMap(object map[string]any, path ...string) (map[string]any, error) {
	parent, err := mapAt(object, path[:len(path)-1]...)
	if err != nil {
		return nil, err
	}
	list, _ := parent[path[len(path)-1]].([]any)
	if len(list) > 0 {
		if first, isMap := list[0].(map[string]any); isMap {
			return first, nil
		}
	}
	return nil, fmt.Errorf("%s: want a list of maps", strings.Join(path, "."))
}
