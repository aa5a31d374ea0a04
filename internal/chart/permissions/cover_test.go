package permissions_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// builtins maps the kinds in the random charts to their resources.
var builtins = map[string][]string{
	"ConfigMap": {"v1", "", "configmaps"}, "Service": {"v1", "", "services"}, "Endpoints": {"v1", "", "endpoints"},
	"Deployment": {"apps/v1", "apps", "deployments"}, "Ingress": {"networking.k8s.io/v1", "networking.k8s.io", "ingresses"},
	"Job": {"batch/v1", "batch", "jobs"}, "Gateway": {"gateway.networking.k8s.io/v1", "gateway.networking.k8s.io", "gateways"},
}

// drawTemplate returns a template with one object behind conditions, in one of the styles
// of real charts.
func drawTemplate(t *rapid.T, helpers *strings.Builder, i int) string {
	kinds := []string{"ConfigMap", "Service", "Endpoints", "Deployment", "Ingress", "Job", "Gateway"}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	version := builtins[kind][0]
	head := func(version, kind string) string {
		lines := []string{"apiVersion: " + version, "kind: " + kind}
		if rapid.Bool().Draw(t, "kind first") {
			slices.Reverse(lines)
		}
		meta := "metadata:\n  name: web"
		if rapid.IntRange(0, 3).Draw(t, "hook") == 0 {
			meta += "\n  {{- if $.Values.hooked }}\n  annotations:\n    \"helm.sh/hook\": post-install\n  {{- end }}"
		}
		return strings.Join(append(lines, meta, "spec:\n  target: {kind: Secret, apiVersion: x/v1}"), "\n") + "\n"
	}
	var text string
	switch rapid.IntRange(0, 7).Draw(t, "way") {
	case 0:
		text = head(version, kind)
	case 1:
		fmt.Fprintf(helpers, `{{ define "version%d" }}{{ if .Values.a }}{{ print %q }}{{ else }}%s{{ end }}{{ end }}`, i, version, version)
		text = head(fmt.Sprintf(`{{ include "version%d" $ }}`, i), kind)
	case 2:
		fmt.Fprintf(helpers, "{{ define \"object%d\" }}\n%s{{ end }}", i, head(version, kind))
		text = fmt.Sprintf("{{ include \"object%d\" $ }}\n", i)
	case 3:
		fmt.Fprintf(helpers, "{{ define \"object%d\" -}}\n%s{{- end }}", i, head(version, kind))
		text = fmt.Sprintf("{{- include \"object%d\" $ | nindent 0 }}\n", i)
	case 4:
		text = head(version, fmt.Sprintf(`{{ ternary %q %q (eq (toString $.Values.b) "true") | quote }}`, kind, kind))
	case 5:
		text = fmt.Sprintf("{{- $kind := %q }}\n{{- $api := %q }}\n", kind, version) + head("{{ $api }}", "{{ $kind }}")
	case 6:
		text = "apiVersion: v1\nkind: List\nitems:\n  - " + strings.ReplaceAll(strings.TrimSpace(head(version, kind)), "\n", "\n    ") + "\n"
	case 7:
		text = fmt.Sprintf("{{- range $kind := list %q }}\n---\n", kind) + head(version, "{{ $kind }}") + "{{- end }}\n"
	}
	for range rapid.IntRange(0, 2).Draw(t, "conditions") {
		open := rapid.SampledFrom([]string{
			"{{ if $.Values.a }}", "{{- if not $.Values.a }}", `{{- if and $.Values.a (eq (toString $.Values.word) "magic") -}}`,
			`{{- with $.Values.word -}}`, "{{- range $.Values.list }}\n---", `{{ if $.Capabilities.APIVersions.Has "x.test/v1" }}`,
			"{{- if $.Values.b }}\n{{- else }}", "{{- if $.Values.a }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: other}\n---\n{{- else if $.Values.b }}",
		}).Draw(t, "condition")
		text = open + "\n" + text + "{{ end }}\n"
	}
	return text
}

// The rules must allow to create each object that a chart renders with any values.
func TestDerive_CoversRenderedObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var helpers strings.Builder
		var documents []string
		for i := range rapid.IntRange(1, 3).Draw(t, "objects") {
			documents = append(documents, drawTemplate(t, &helpers, i))
		}
		loaded := files{"templates/all.yaml": strings.Join(documents, "---\n"), "templates/_helpers.tpl": helpers.String()}
		kind := kindOf(t, loaded)
		report := derive(t, permissions.Options{}, kind)
		if len(report.Unresolved) > 0 {
			t.Fatalf("not resolved: %v\n%s", report.Unresolved, loaded["templates/all.yaml"])
		}
		var have []rbacv1.PolicyRule
		for _, rule := range report.Rules {
			have = append(have, rule.PolicyRule)
		}
		result, err := kind.Chart.Render(chart.Offline{
			Release: "web", Namespace: "shop", APIVersions: []string{"x.test/v1"}, Values: map[string]any{
				"a": rapid.Bool().Draw(t, "a"), "b": rapid.Bool().Draw(t, "b"), "hooked": rapid.Bool().Draw(t, "hooked"),
				"word": rapid.SampledFrom([]string{"", "magic"}).Draw(t, "word"), "list": []any{int64(1)},
			},
		})
		if errors.Is(err, chart.ErrRender) {
			t.Skip("it does not render")
		}
		if err != nil {
			t.Fatal(err)
		}
		check := func(object chart.RenderedObject, verbs ...string) {
			gvk := object.GroupVersionKind()
			if gvk.Version == "" || gvk.Kind == "" {
				// The second of two successive dividers becomes part of the first key.
				return
			}
			resource := "secrets"
			if known, ok := builtins[gvk.Kind]; ok {
				resource = known[2]
			}
			need := rbacv1.PolicyRule{APIGroups: []string{gvk.Group}, Resources: []string{resource}, Verbs: verbs}
			if missing := permissions.Allowed(have, need); missing != nil {
				t.Errorf("the chart renders a %s, but the rules lack %v:\n%s\n%s", gvk.Kind, missing, loaded["templates/all.yaml"], loaded["templates/_helpers.tpl"])
			}
		}
		for _, object := range result.Objects {
			check(object, words(everything)...)
		}
		for _, hook := range result.Hooks {
			check(hook, "get", "create", "delete")
			if hook.GetKind() == "Job" {
				check(hook, "watch")
			}
		}
	})
}
