{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "image: null" renders what "image: {}" does.
*/}}

{{/*
Prefix of the components' names: the release's name, shortened to 52 characters, because the Service of the longest
component would exceed the limit of 63.
*/}}
{{- define "config.name" -}}
{{- if gt (len .Release.Name) 52 -}}
{{ .Release.Name | trunc 43 | trimSuffix "-" }}-{{ .Release.Name | sha256sum | trunc 8 }}
{{- else -}}
{{ .Release.Name }}
{{- end -}}
{{- end }}

{{/* Labels that select the release's objects. */}}
{{- define "config.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "config.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "config.selectorLabels" . }}
app.kubernetes.io/part-of: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The profile. */}}
{{- define "config.profile" -}}
{{ .Values.profile | default "all" }}
{{- end }}

{{/* The components of the profile, separated by spaces. */}}
{{- define "config.components" -}}
{{- $profile := include "config.profile" . -}}
controller
{{- if ne $profile "lite" }} webhook{{ end }}
{{- if eq $profile "all" }} dashboard{{ end }}
{{- end }}

{{/* The number of pods of a component. "default" cannot be used: it treats 0 as empty. */}}
{{- define "config.replicas" -}}
{{- if kindIs "invalid" .Values.replicas }}1{{ else }}{{ int64 .Values.replicas }}{{ end }}
{{- end }}

{{/* The image with its digest or tag. */}}
{{- define "config.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* OpenShift assigns the IDs itself. */}}
{{- define "config.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openShift }}
runAsUser: 101
runAsGroup: 101
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "config.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}
