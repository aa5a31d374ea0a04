{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "image: null" renders what "image: {}" does.
*/}}

{{/* Labels that the Deployment and the Service select the pods by. A Deployment's selector is immutable, so these labels must not change. */}}
{{- define "ovhnginx.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every pod. They do not contain the chart's version, so that a new chart does not restart pods by itself. */}}
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

{{/* The image with its digest or tag. */}}
{{- define "ovhnginx.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "ovhnginx.serviceType" -}}
{{ (.Values.service | default dict).type | default "LoadBalancer" }}
{{- end }}

{{/* The files to serve. Their names are keys of a ConfigMap, and the shell's "*" matches them. */}}
{{- define "ovhnginx.content" -}}
{{- range $name, $text := .Values.content }}
{{- if not (regexMatch "^[A-Za-z0-9][-A-Za-z0-9_.]*$" $name) }}
{{- fail (printf "content: got the file name %q, want letters, digits, '-', '_' and '.', starting with a letter or a digit" $name) }}
{{- end }}
{{ $name | quote }}: {{ $text | quote }}
{{- end }}
{{- end }}

{{/* The port for HTTPS requests, or nothing. */}}
{{- define "ovhnginx.httpsPort" -}}
{{- $tls := .Values.tls | default dict -}}
{{- if $tls.secretName -}}
{{- $port := $tls.port | default 443 | int64 -}}
{{- if eq $port (int64 .Values.port) -}}
{{- fail (printf "tls.port: got %d, which is also the port for HTTP requests; want another port" $port) -}}
{{- end -}}
{{ $port }}
{{- end -}}
{{- end }}

{{/* A page that exists: the readiness check requests it. */}}
{{- define "ovhnginx.page" -}}
{{- $content := .Values.content | default dict -}}
/{{ if and $content (not (hasKey $content "index.html")) }}{{ keys $content | sortAlpha | first }}{{ end }}
{{- end }}

{{/* Maximum number of pods. */}}
{{- define "ovhnginx.maxReplicas" -}}
{{- $autoscaling := .Values.autoscaling | default dict -}}
{{- $replicas := int64 .Values.replicaCount -}}
{{- if and $autoscaling.enabled $replicas }}{{ max $replicas ($autoscaling.maxReplicas | default 5 | int64) }}{{ else }}{{ $replicas }}{{ end }}
{{- end }}

{{/* OpenShift assigns the IDs itself. */}}
{{- define "ovhnginx.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openShift }}
runAsUser: 101
runAsGroup: 101
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "ovhnginx.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}
