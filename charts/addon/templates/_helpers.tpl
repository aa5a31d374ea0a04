{{/* Labels of every object. */}}
{{- define "addon.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
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
