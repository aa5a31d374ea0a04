{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "image: null" renders what "image: {}" does.
*/}}

{{/* Labels that the Deployment selects its pods by. A Deployment's selector is immutable, so these labels must not change. */}}
{{- define "podset.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. They do not contain the chart's version, so that a new chart does not restart pods by itself. */}}
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

{{/* The number of pods. "default" cannot be used: it treats 0 as empty. */}}
{{- define "podset.replicas" -}}
{{- if kindIs "invalid" .Values.replicas }}1{{ else }}{{ int64 .Values.replicas }}{{ end }}
{{- end }}

{{/* The image with its digest or tag. */}}
{{- define "podset.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/library/busybox" -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* OpenShift assigns the IDs itself. */}}
{{- define "podset.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openShift }}
runAsUser: 65534
runAsGroup: 65534
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "podset.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}
