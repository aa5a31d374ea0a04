{{- define "marks" -}}
labels:
  app: {{ .Release.Name }}
  example.com/team: blue
annotations:
  example.com/note: mine
{{- end }}
{{- define "pod" -}}
metadata:
  labels:
    app: {{ .Release.Name }}
    tier: {{ .Values.tier }}
spec:
  terminationGracePeriodSeconds: 5
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: main
      image: registry.example/main:1
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      env:
        - name: COLOR
          value: red
        - name: SHAPE
          value: round
{{- end }}
