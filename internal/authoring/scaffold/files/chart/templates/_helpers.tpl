{{/*
A null in the values takes a chart's default away; that is Helm's rule. So every default that an object
cannot do without is given once more where it is used, and "image: null" renders what "image: {}" does.
*/}}

{{/* What Deployment and Service select the pods by. Immutable on a Deployment, so never anything that changes. */}}
{{- define "[[.Name]].selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. Without the chart's version: a new chart alone must not restart pods. */}}
{{- define "[[.Name]].podLabels" -}}
{{ include "[[.Name]].selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "[[.Name]].labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "[[.Name]].podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* The image with its tag. */}}
{{- define "[[.Name]].image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
