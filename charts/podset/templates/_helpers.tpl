{{/*
A null in the values takes a chart's default away; that is Helm's rule. So every default that a pod
cannot do without is given once more where it is used, and "image: null" renders what "image: {}" does.
*/}}

{{/* What the Deployment selects its pods by. Immutable on a Deployment, so never anything that changes. */}}
{{- define "podset.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. Without the chart's version: a new chart alone must not restart pods. */}}
{{- define "podset.podLabels" -}}
{{ include "podset.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
version: {{ .Values.version | default .Chart.AppVersion | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "podset.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "podset.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The number of pods. "default" would not do: it takes 0 for empty. */}}
{{- define "podset.replicas" -}}
{{- if kindIs "invalid" .Values.replicas }}1{{ else }}{{ int64 .Values.replicas }}{{ end }}
{{- end }}

{{/* The image with its tag. */}}
{{- define "podset.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/library/busybox" }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end }}
