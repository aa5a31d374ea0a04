package permissions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

func TestDerive(t *testing.T) {
	const configMaps = "configmaps: " + everything
	hook := strings.Replace(object("batch/v1", "Job"), "metadata:", "metadata:\n  annotations: {\"helm.sh/hook\": pre-upgrade}", 1)
	for _, test := range []struct {
		name  string
		chart files
		entry []string
		want  []string
	}{
		{name: "an empty chart", want: []string{}},
		{name: "an object", chart: files{"templates/a.yaml": object("v1", "ConfigMap")}, want: []string{configMaps}},
		{
			name: "a false condition",
			chart: files{
				"values.yaml":      "ingress:\n  enabled: false\n",
				"templates/a.yaml": "{{ if .Values.ingress.enabled }}\n" + object("networking.k8s.io/v1", "Ingress") + "{{ end }}",
			},
			want: []string{"ingresses.networking.k8s.io: " + everything},
		},
		{
			name:  "a condition that no values satisfy",
			chart: files{"templates/a.yaml": "{{ if and .Values.never (eq .Values.word \"magic\") }}\n" + object("v1", "ConfigMap") + "{{ end }}"},
			want:  []string{configMaps},
		},
		{
			name:  "a condition on an API version",
			chart: files{"templates/a.yaml": "{{- if .Capabilities.APIVersions.Has \"monitoring.coreos.com/v1\" }}\n" + object("monitoring.coreos.com/v1", "ServiceMonitor") + "{{- end }}"},
			want:  []string{"servicemonitors.monitoring.coreos.com: " + everything},
		},
		{
			name: "a range over an empty list",
			chart: files{
				"values.yaml":      "maps: []\n",
				"templates/a.yaml": "{{- range .Values.maps }}\n---\n" + strings.ReplaceAll(object("v1", "ConfigMap"), ".Release", "$.Release") + "{{- end }}",
			},
			want: []string{configMaps},
		},
		{
			name: "an apiVersion of a helper",
			chart: files{
				"templates/_helpers.tpl": `{{ define "api" }}{{ if .Capabilities.APIVersions.Has "autoscaling/v2" }}{{ print "autoscaling/v2" }}{{ else }}autoscaling/v2beta2{{ end }}{{ end }}`,
				"templates/a.yaml":       "{{ if .Values.never }}\n" + object(`{{ include "api" . }}`, "HorizontalPodAutoscaler") + "{{ end }}",
			},
			want: []string{"horizontalpodautoscalers.autoscaling: " + everything},
		},
		{
			name:  "an unknown apiVersion of a known kind",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\n" + object("{{ .Values.api }}", "PodDisruptionBudget") + "{{ end }}"},
			want:  []string{"poddisruptionbudgets.policy: " + everything},
		},
		{
			name:  "an unknown version of a known group",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\n" + object("cert-manager.io/{{ .Values.v }}", "Certificate") + "{{ end }}"},
			want:  []string{"certificates.cert-manager.io: " + everything},
		},
		{
			name:  "one of two kinds",
			chart: files{"templates/a.yaml": object("apps/v1", `{{ ternary "Deployment" "StatefulSet" (eq .Values.mode "plain") }}`), "values.yaml": "mode: plain\n"},
			want:  []string{"deployments.apps: " + everything, "pods: list", "replicasets.apps: list", "statefulsets.apps: " + everything},
		},
		{
			name:  "a kind of a variable",
			chart: files{"templates/a.yaml": "{{ $kind := \"Secret\" }}{{ if .Values.plain }}{{ $kind = \"ConfigMap\" }}{{ end }}\n" + object("v1", "{{ $kind }}")},
			want:  []string{configMaps},
		},
		{
			name:  "kinds of a range",
			chart: files{"templates/a.yaml": "{{- range $kind := list \"Service\" \"ConfigMap\" }}\n{{- if $.Values.never }}\n---\n" + strings.ReplaceAll(object("v1", "{{ $kind }}"), ".Release", "$.Release") + "{{- end }}{{- end }}"},
			want:  []string{configMaps, "services: " + everything},
		},
		{
			name: "a kind from an enum of the schema",
			chart: files{
				"values.yaml":        "kind: DaemonSet\n",
				"values.schema.json": `{"type": "object", "properties": {"kind": {"$ref": "#/$defs/kind"}}, "$defs": {"kind": {"enum": ["DaemonSet", "StatefulSet"]}}}`,
				"templates/a.yaml":   object("apps/v1", "{{ .Values.kind }}"),
			},
			want: []string{"daemonsets.apps: " + everything, "pods: list", "statefulsets.apps: " + everything},
		},
		{
			name: "an object of a helper",
			chart: files{
				"templates/_helpers.tpl": `{{ define "object" }}{{ if .Values.never }}` + "\n" + object("v1", "Service") + `{{ end }}{{ end }}`,
				"templates/a.yaml":       `{{ include "object" . }}` + "\n---\n" + `{{- template "object" . }}`,
			},
			want: []string{"services: " + everything},
		},
		{
			name: "an object of a helper, on a line of its own",
			chart: files{
				"templates/_helpers.tpl": `{{ define "object" -}}` + "\n" + object("v1", "Service") + `{{- end }}`,
				"templates/a.yaml":       "{{- if .Values.never }}\n# It comes next.\n{{- include \"object\" . | nindent 0 }}\n{{- end }}",
			},
			want: []string{"services: " + everything},
		},
		{
			name: "kinds in nested fields",
			chart: files{"templates/a.yaml": object("autoscaling/v2", "HorizontalPodAutoscaler") +
				"spec:\n  scaleTargetRef:\n    apiVersion: apps/v1\n    kind: Deployment\n    name: web\n"},
			want: []string{"horizontalpodautoscalers.autoscaling: " + everything},
		},
		{
			name: "a list",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\napiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a}\n" +
				"  - apiVersion: autoscaling/v2\n    kind: HorizontalPodAutoscaler\n    metadata: {name: b}\n    spec:\n      scaleTargetRef:\n        kind: Deployment\n{{ end }}"},
			want: []string{configMaps, "horizontalpodautoscalers.autoscaling: " + everything},
		},
		{
			name:  "exclusive branches",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\napiVersion: v1\nkind: Service\n{{ else }}\napiVersion: apps/v1\nkind: ReplicaSet\n{{ end }}metadata: {name: a}\n"},
			want:  []string{"pods: list", "replicasets.apps: " + everything, "services: " + everything},
		},
		{
			name:  "quotes and comments",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\n# kind: Secret\n\"apiVersion\": 'v1' # core\nkind: \"ConfigMap\" # a map\n{{ end }}"},
			want:  []string{configMaps},
		},
		{
			name:  "braces",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, roleRef: {kind: Role}}\n---\n{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Service\",\n  \"metadata\": {\n    \"kind\": \"x\"\n  }\n}\n{{ end }}"},
			want:  []string{configMaps, "services: " + everything},
		},
		{
			name: "a disabled subchart",
			chart: files{
				"Chart.yaml":                     "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies: [{name: cache, version: 1.0.0, condition: cache.enabled}]\n",
				"values.yaml":                    "cache: {enabled: false}\n",
				"charts/cache/Chart.yaml":        "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
				"charts/cache/values.yaml":       "kind: Service\n",
				"charts/cache/templates/a.yaml":  "{{ if .Values.never }}\n" + object("v1", "Endpoints") + "{{ end }}",
				"charts/cache/templates/b.yaml":  object("v1", "ConfigMap"),
				"charts/cache/crds/widgets.yaml": crd("Widget", "widgetry", "Namespaced"),
			},
			want: []string{configMaps, "customresourcedefinitions.apiextensions.k8s.io (widgetry.shop.test): get create patch", "endpoints: " + everything},
		},
		{name: "a hook", chart: files{"templates/a.yaml": hook}, want: []string{"jobs.batch: get watch create delete", "pods: list"}},
		{
			name:  "a disabled hook",
			chart: files{"templates/a.yaml": "{{ if .Values.never }}\n" + hook + "{{ end }}"},
			want:  []string{"jobs.batch: get watch create delete", "pods: list"},
		},
		{
			name:  "a conditional hook",
			chart: files{"templates/a.yaml": object("v1", "ConfigMap") + "  {{- if .Values.early }}\n  annotations:\n    helm.sh/hook: pre-install\n  {{- end }}\n"},
			want:  []string{configMaps},
		},
		{
			name:  "a hook that is not a Job",
			chart: files{"templates/a.yaml": object("v1", "ConfigMap") + "  annotations:\n    \"helm.sh/hook\": pre-install\n"},
			want:  []string{"configmaps: get create delete"},
		},
		{
			name:  "a hook's output",
			chart: files{"templates/a.yaml": strings.Replace(hook, "pre-upgrade", `test, "helm.sh/hook-output-log-policy": hook-failed`, 1)},
			want:  []string{"jobs.batch: get watch create delete", "pods: list", "pods/log: get"},
		},
		{
			name:  "crds/",
			chart: files{"crds/a.yaml": crd("Widget", "widgetry", "Namespaced"), "templates/a.yaml": object("shop.test/v1", "Widget")},
			want:  []string{"customresourcedefinitions.apiextensions.k8s.io (widgetry.shop.test): get create patch", "widgetry.shop.test: " + everything},
		},
		{
			name:  "crds/ with other objects",
			chart: files{"crds/a.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"},
			want:  []string{"poddisruptionbudgets.policy: " + everything},
		},
		{
			name:  "crds/ with other objects, and crds: Skip",
			chart: files{"crds/a.yaml": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"},
			entry: []string{"crds: Skip"},
			want:  []string{},
		},
		{
			name:  "crds/ with crds: Skip",
			chart: files{"crds/a.yaml": crd("Widget", "widgetry", "Namespaced"), "templates/a.yaml": object("shop.test/v1", "Widget")},
			entry: []string{"crds: Skip"},
			want:  []string{"widgetry.shop.test: " + everything},
		},
		{
			name:  "a CRD among the templates",
			chart: files{"templates/a.yaml": crd("Widget", "widgetry", "Namespaced"), "templates/b.yaml": object("shop.test/v1", "Widget")},
			want:  []string{"customresourcedefinitions.apiextensions.k8s.io: get create patch delete", "widgetry.shop.test: " + everything},
		},
		{
			name:  "lookups",
			chart: files{"templates/a.yaml": `{{ $a := lookup "v1" "Service" .Release.Namespace "web" }}{{ $b := lookup "apps/v1" "Deployment" .Release.Namespace "" }}{{ $c := (lookup "batch/v1" "Job" "x" .Release.Name).status }}`},
			want:  []string{"deployments.apps: list", "jobs.batch: get list", "services: get"},
		},
		{
			name:  "rejected lookups",
			chart: files{"templates/a.yaml": `{{ $a := lookup "v1" "Node" "" "" }}{{ $b := lookup "v1" "Namespace" "" .Release.Namespace }}`},
			want:  []string{"namespaces: get list"},
		},
		{
			name:  "lookups with allow.lookup all",
			chart: files{"templates/a.yaml": `{{ $a := lookup "v1" "Node" "" "" }}`},
			entry: []string{"allow: {lookup: all}"},
			want:  []string{"nodes: list"},
		},
		{
			name:  "disabled lookups",
			chart: files{"templates/a.yaml": `{{ if .Values.never }}{{ $a := lookup "v1" "Service" "a" "web" }}{{ end }}`},
			entry: []string{"allow: {lookup: none}"},
			want:  []string{},
		},
		{
			name:  "impersonation",
			chart: files{"templates/a.yaml": object("apps/v1", "Deployment") + "---\n" + hook + `---` + "\n" + `{{ $a := lookup "v1" "Service" "a" "web" }}`, "crds/a.yaml": crd("Widget", "widgetry", "Namespaced")},
			entry: []string{"serviceAccountName: deployer"},
			want:  []string{"deployments.apps: get list watch delete", "jobs.batch: get", "pods: list", "replicasets.apps: list", "serviceaccounts (deployer): get impersonate"},
		},
		{
			name:  "impersonation of a template",
			entry: []string{`serviceAccountName: "{{ .metadata.name }}"`},
			want:  []string{"serviceaccounts: get impersonate"},
		},
		{
			name:  "valuesFrom and observe",
			entry: []string{"valuesFrom: [{kind: ConfigMap, name: a}]", "observe: [{name: sets, apiVersion: apps/v1, kind: StatefulSet, selector: {matchLabels: {a: b}}}]"},
			want:  []string{"configmaps: get list watch", "statefulsets.apps: list watch"},
		},
		{
			name: "dependsOn and its annotation",
			entry: []string{
				"allow: {dependsOn: {annotation: [{apiVersion: apps/v1, kind: StatefulSet}, {apiVersion: a.test/v1, kind: Queue}]}}",
				"dependsOn: [{apiVersion: a.test/v1, kind: Database, name: a}, {apiVersion: a.test/v1, kind: Database, name: b}, {apiVersion: v1, kind: Node, name: c}]",
			},
			want: []string{"databases.a.test: get list watch", "nodes: get list watch", "queues.a.test: get list watch", "statefulsets.apps: get list watch"},
		},
		{
			name:  "createNamespace",
			entry: []string{"releaseNamespace: a", `createNamespace: "{{ .spec.create }}"`},
			want:  []string{"namespaces: get create patch delete", "persistentvolumeclaims: list"},
		},
		{
			name:  "a hook with data",
			chart: files{"templates/a.yaml": object("v1", "PersistentVolumeClaim") + "  annotations: {helm.sh/hook: pre-install}\n"},
			want:  []string{"persistentvolumeclaims: get create patch delete"},
		},
		{
			name:  "a StatefulSet that deletes its claims",
			chart: files{"templates/a.yaml": object("apps/v1", "StatefulSet") + "spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}\n"},
			want:  []string{"persistentvolumeclaims: get list patch", "pods: list", "statefulsets.apps: " + everything},
		},
		{
			name:  "declared rules",
			entry: []string{`rbac: [{apiGroups: [a.test], resources: [widgets]}, {apiGroups: [""], resources: [nodes], resourceNames: [one], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]`},
			want:  []string{"/metrics: get", "nodes (one): get", "widgets.a.test: " + everything},
		},
		{
			name: "a value set by overrideValues",
			chart: files{
				"values.yaml":      "kind: ConfigMap\n",
				"templates/a.yaml": object("v1", "{{ .Values.kind }}"),
			},
			entry: []string{"overrideValues: {kind: Service}", "rbac: [{template: templates/a.yaml}]"},
			want:  []string{configMaps, "services: " + everything},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			expectNeeds(t, kindOf(t, test.chart, test.entry...), test.want)
		})
	}
}

// crd returns a CRD in the group shop.test.
func crd(kind, plural, scope string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + plural + `.shop.test
spec:
  group: shop.test
  scope: ` + scope + `
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
}

// expectNeeds compares the rules of a kind, which must have no unresolved lines.
func expectNeeds(t *testing.T, kind catalog.Kind, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, needs(t, permissions.Options{}, kind)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if left := derive(t, permissions.Options{}, kind).Unresolved; len(left) > 0 {
		t.Errorf("not resolved: %v", left)
	}
}
