{{/* Labels of every object. */}}
{{- define "addon.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ include "addon.version" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The parameters by name, as YAML: the values of the user merged over the defaults. */}}
{{- define "addon.params" -}}
{{- $given := dict -}}
{{- range .Values.params -}}
{{- if hasKey $given .name -}}
{{- fail (printf "params: %s is given twice" .name) -}}
{{- end -}}
{{- $_ := set $given .name .value -}}
{{- end -}}
{{- $params := merge $given (dict "clusterTasks" "true" "pipelineTemplates" "true") -}}
{{- if and (eq $params.pipelineTemplates "true") (ne $params.clusterTasks "true") -}}
{{- fail "params: pipelineTemplates needs clusterTasks: the pipelines refer to the tasks" -}}
{{- end -}}
{{- toYaml $params -}}
{{- end }}

{{/* The release of the templates. */}}
{{- define "addon.version" -}}
{{ .Values.version | default .Chart.AppVersion }}
{{- end }}

{{/* "true" if the cluster serves Tekton's Tasks and Pipelines, otherwise nothing. */}}
{{- define "addon.tekton" -}}
{{- if and (.Capabilities.APIVersions.Has "tekton.dev/v1/Task") (.Capabilities.APIVersions.Has "tekton.dev/v1/Pipeline") }}true{{ end -}}
{{- end }}

{{/* Fails if the values name another namespace than that of the release. */}}
{{- define "addon.checkNamespace" -}}
{{- $target := .Values.targetNamespace -}}
{{- if and $target (ne $target .Release.Namespace) -}}
{{- fail (printf "targetNamespace: got %q, want %q: an Addon installs into its own namespace; use a ClusterAddon to install into another one" $target .Release.Namespace) -}}
{{- end -}}
{{- end }}

{{/* Name of a Task or Pipeline: (list . "make"). It starts with the release's name and is shortened to 63 characters. */}}
{{- define "addon.objectName" -}}
{{- $name := printf "%s-%s" (index . 0).Release.Name (index . 1) -}}
{{- if gt (len $name) 63 }}{{ printf "%s-%s" (trunc 54 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ else }}{{ $name }}{{ end -}}
{{- end }}

{{/* Text of a file: (list . "files/1.0/tasks/make.yaml"). OpenShift assigns the steps' user itself. */}}
{{- define "addon.file" -}}
{{- $text := (index . 0).Files.Get (index . 1) -}}
{{- if (index . 0).Values.openShift }}{{ regexReplaceAll "(?m)^ *runAsUser: .*\n" $text "" }}{{ else }}{{ $text }}{{ end -}}
{{- end }}
