{{/*
A null in the values takes a chart's default away; that is Helm's rule. So every default that a pod
cannot do without is given once more where it is used, and "image: null" renders what "image: {}" does.
*/}}

{{/* What Deployment and Service select the pods by. Immutable on a Deployment, so never anything that changes. */}}
{{- define "ovhnginx.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. Without the chart's version: a new chart alone must not restart pods. */}}
{{- define "ovhnginx.podLabels" -}}
{{ include "ovhnginx.selectorLabels" . }}
app.kubernetes.io/component: web
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "ovhnginx.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "ovhnginx.selectorLabels" . }}
app.kubernetes.io/component: web
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The image with its tag. */}}
{{- define "ovhnginx.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
