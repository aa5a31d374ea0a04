{{/*
In Helm, a null value removes the default of the chart. So templates repeat every required default, and
"image: null" has the same result as "image: {}".
*/}}

{{/* Labels by which Deployment and Service select the pods. They are immutable, so they must not depend on versions. */}}
{{- define "[[.Name]].selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. They do not contain the chart version: a new chart version must not restart pods. */}}
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
