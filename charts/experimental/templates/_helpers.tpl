{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "image: null" renders what "image: {}" does.
*/}}

{{/*
Name of the StatefulSet: the release's name, shortened to 52 characters, because the pods get a label with this name
and 11 more characters, and labels are limited to 63.
*/}}
{{- define "experimental.name" -}}
{{- if gt (len .Release.Name) 52 -}}
{{ .Release.Name | trunc 43 | trimSuffix "-" }}-{{ .Release.Name | sha256sum | trunc 8 }}
{{- else -}}
{{ .Release.Name }}
{{- end -}}
{{- end }}

{{/* Labels that the StatefulSet and the Services select the pods by. A StatefulSet's selector is immutable, so these labels must not change. */}}
{{- define "experimental.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. They do not contain the chart's version, so that a new chart does not restart pods by itself. */}}
{{- define "experimental.podLabels" -}}
{{ include "experimental.selectorLabels" . }}
app.kubernetes.io/component: web
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "experimental.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "experimental.selectorLabels" . }}
app.kubernetes.io/component: web
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* "true" or nothing. "default" and "or" cannot be used: they treat false as empty. */}}
{{- define "experimental.public" -}}
{{- if not (kindIs "invalid" .Values.isPublic) -}}
{{- if .Values.isPublic }}true{{ end -}}
{{- else if .Values.is_public -}}
true
{{- end -}}
{{- end }}

{{/* The number of replicas. "default" cannot be used: it treats 0 as empty. */}}
{{- define "experimental.replicas" -}}
{{- if not (kindIs "invalid" .Values.numberOfReplicas) -}}
{{ int64 .Values.numberOfReplicas }}
{{- else if not (kindIs "invalid" .Values.number_of_replicas) -}}
{{ int64 .Values.number_of_replicas }}
{{- else -}}
1
{{- end -}}
{{- end }}

{{/* The Service's port. */}}
{{- define "experimental.port" -}}
{{ int64 ((.Values.service | default dict).port | default 80) }}
{{- end }}

{{/* The image with its tag. */}}
{{- define "experimental.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
