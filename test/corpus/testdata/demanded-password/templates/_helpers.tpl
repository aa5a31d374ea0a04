{{- define "fullname" }}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "validations.values.single.empty" }}
{{- $value := .context.Values }}
{{- range $key := splitList "." .valueKey }}{{ $value = index $value $key }}{{ end }}
{{- if not $value }}
    '{{ .valueKey }}' must not be empty, please add '--set {{ .valueKey }}=$PASSWORD' to the command.
{{- end }}
{{- end }}

{{- define "errors.upgrade.passwords.empty" }}
{{- $errors := join "" .validationErrors }}
{{- if and $errors .context.Release.IsUpgrade }}
{{- printf "\nPASSWORDS ERROR: You must provide your current passwords when upgrading the release.\n%s" $errors | fail }}
{{- end }}
{{- end }}
