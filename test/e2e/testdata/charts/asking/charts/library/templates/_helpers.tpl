{{- define "library.hasAPI" -}}
{{- $given := default .context.Values.apiVersions ((.context.Values.global).apiVersions) -}}
{{- if and (empty $given) (.context.Capabilities.APIVersions.Has .api) }}yes{{ else if has .api $given }}yes{{ end -}}
{{- end -}}
{{- define "library.oldHelm" -}}
{{- if not (contains "HelmVersion" (.Capabilities | toString)) }}yes{{ end -}}
{{- end -}}
