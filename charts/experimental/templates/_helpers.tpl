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

{{/* Environment variables of PostgreSQL's clients. */}}
{{- define "experimental.connection" -}}
{{- $connection := .Values.connection -}}
{{- range $variable, $name := dict "PGHOST" "host" "PGPORT" "port" "PGDATABASE" "database" "PGUSER" "username" "PGPASSWORD" "password" }}
{{- $value := get $connection $name }}
{{- if and (not (kindIs "invalid" $value)) (ne (toString $value) "") }}
{{ $variable }}: {{ kindIs "float64" $value | ternary (int64 $value | toString) (toString $value) | quote }}
{{- end }}
{{- end }}
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

{{/* The image with its digest or tag. */}}
{{- define "experimental.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/nginxinc/nginx-unprivileged" -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Type of the Service. */}}
{{- define "experimental.serviceType" -}}
{{- $type := (.Values.service | default dict).type -}}
{{- if $type }}{{ $type }}{{ else if include "experimental.public" . }}LoadBalancer{{ else }}ClusterIP{{ end -}}
{{- end }}

{{/* The files to serve. Their names are keys of a ConfigMap, and the shell's "*" matches them. */}}
{{- define "experimental.content" -}}
{{- range $name, $text := .Values.content }}
{{- if not (regexMatch "^[A-Za-z0-9][-A-Za-z0-9_.]*$" $name) }}
{{- fail (printf "content: got the file name %q, want letters, digits, '-', '_' and '.', starting with a letter or a digit" $name) }}
{{- end }}
{{ $name | quote }}: {{ $text | quote }}
{{- end }}
{{- end }}

{{/* The port for HTTPS requests, or nothing. */}}
{{- define "experimental.httpsPort" -}}
{{- $tls := .Values.tls | default dict -}}
{{- if $tls.secretName -}}
{{- $port := $tls.port | default 443 | int64 -}}
{{- if eq $port (include "experimental.port" . | int64) -}}
{{- fail (printf "tls.port: got %d, which is also the port for HTTP requests; want another port" $port) -}}
{{- end -}}
{{ $port }}
{{- end -}}
{{- end }}

{{/* Maximum number of replicas. */}}
{{- define "experimental.maxReplicas" -}}
{{- $autoscaling := .Values.autoscaling | default dict -}}
{{- $replicas := include "experimental.replicas" . | int64 -}}
{{- if and $autoscaling.enabled $replicas }}{{ max $replicas ($autoscaling.maxReplicas | default 5 | int64) }}{{ else }}{{ $replicas }}{{ end }}
{{- end }}

{{/* OpenShift assigns the IDs itself. */}}
{{- define "experimental.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openShift }}
runAsUser: 101
runAsGroup: 101
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "experimental.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}
