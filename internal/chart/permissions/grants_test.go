package permissions_test

import "testing"

func TestGrants(t *testing.T) {
	const group = ".rbac.authorization.k8s.io"
	role := object("rbac.authorization.k8s.io/v1", "Role") + "rules:\n"
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding") + "subjects: []\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: "
	for _, test := range []struct {
		name  string
		chart files
		entry []string
		want  []string
	}{
		{
			name:  "a Role",
			chart: files{"templates/a.yaml": role + "- {apiGroups: ['', apps], resources: [pods], verbs: [get, list]}\n- {apiGroups: [''], resources: [pods/exec], verbs: [create]}\n"},
			want:  []string{"pods: get list", "pods.apps: get list", "pods/exec: create", "roles" + group + ": " + everything},
		},
		{
			name: "rules behind a condition",
			chart: files{
				"values.yaml":      "wide: false\n",
				"templates/a.yaml": role + "{{ if .Values.wide }}\n- {apiGroups: [''], resources: [nodes], verbs: [get]}\n{{ else }}\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n{{ end }}",
			},
			want: []string{"nodes: get", "pods: get", "roles" + group + ": " + everything},
		},
		{
			name: "rules behind an enum of the schema",
			chart: files{
				"values.schema.json": `{"properties": {"mode": {"oneOf": [{"const": "narrow"}, {"const": "wide"}]}}}`,
				"templates/a.yaml":   role + "{{ if eq (.Values.mode | default \"\") \"wide\" }}\n- {apiGroups: [''], resources: [nodes], verbs: [get]}\n{{ end }}",
			},
			want: []string{"nodes: get", "roles" + group + ": " + everything},
		},
		{
			name: "rules in an example",
			chart: files{
				"ci/wide-values.yaml": "rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n",
				"templates/a.yaml":    role + "{{ with .Values.rules }}{{ toYaml . }}{{ end }}\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n",
			},
			want: []string{"nodes: get", "pods: get", "roles" + group + ": " + everything},
		},
		{
			name:  "constant resource names",
			chart: files{"templates/a.yaml": role + "- {apiGroups: [''], resources: [configmaps], resourceNames: [lock, key], verbs: [get]}\n"},
			want:  []string{"configmaps (key): get", "configmaps (lock): get", "roles" + group + ": " + everything},
		},
		{
			name:  "resource names that depend on the release",
			chart: files{"templates/a.yaml": role + "- {apiGroups: [''], resources: [configmaps], resourceNames: ['{{ .Release.Name }}-lock'], verbs: [get]}\n"},
			want:  []string{"configmaps: get", "roles" + group + ": " + everything},
		},
		{
			name: "resource names from values",
			chart: files{
				"values.yaml":      "lock: my-lock\n",
				"templates/a.yaml": role + "- {apiGroups: [''], resources: [configmaps], resourceNames: ['{{ .Values.lock }}'], verbs: [get]}\n",
			},
			want: []string{"configmaps: get", "roles" + group + ": " + everything},
		},
		{
			name:  "non-resource URLs",
			chart: files{"templates/a.yaml": object("rbac.authorization.k8s.io/v1", "ClusterRole") + "rules: [{nonResourceURLs: [/metrics], verbs: [get]}]\n"},
			want:  []string{"/metrics: get", "clusterroles" + group + ": " + everything},
		},
		{
			name:  "a role that is a hook",
			chart: files{"templates/a.yaml": object("rbac.authorization.k8s.io/v1", "Role") + "  annotations: {helm.sh/hook: pre-install}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"},
			want:  []string{"pods: get", "roles" + group + ": get create delete"},
		},
		{
			name:  "a binding to the chart's own role",
			chart: files{"templates/a.yaml": role + "- {apiGroups: [''], resources: [pods], verbs: [get]}\n---\n" + binding + "Role, name: '{{ .Release.Name }}'}\n"},
			want:  []string{"pods: get", "rolebindings" + group + ": " + everything, "roles" + group + ": " + everything},
		},
		{
			name:  "a binding to a role of Kubernetes",
			chart: files{"templates/a.yaml": binding + "ClusterRole, name: view}\n"},
			want:  []string{"clusterroles" + group + " (view): bind", "rolebindings" + group + ": " + everything},
		},
		{
			name:  "bindings with impersonation",
			chart: files{"templates/a.yaml": role + "- {apiGroups: [''], resources: [nodes], verbs: [get]}\n---\n" + binding + "ClusterRole, name: view}\n"},
			entry: []string{"serviceAccountName: deployer"},
			want: []string{
				"rolebindings" + group + ": get list watch delete", "roles" + group + ": get list watch delete",
				"serviceaccounts (deployer): get impersonate",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			expectNeeds(t, kindOf(t, test.chart, test.entry...), test.want)
		})
	}
}
