{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "backup: null" renders what "backup: {}" does.
*/}}

{{/* Shortens a name to 52 characters: the limit of CronJobs, and of StatefulSets because of their pods' labels. */}}
{{- define "database.fit" -}}
{{- if gt (len .) 52 }}{{ printf "%s-%s" (trunc 43 . | trimSuffix "-") (sha256sum . | trunc 8) }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Name of the StatefulSet, the Service and the PodDisruptionBudget. */}}
{{- define "database.fullname" -}}
{{ include "database.fit" .Release.Name }}
{{- end }}

{{/* Name of another object: (list . "backup"). */}}
{{- define "database.part" -}}
{{ include "database.fit" (printf "%s-%s" (index . 0).Release.Name (index . 1)) }}
{{- end }}

{{/* Labels that the StatefulSet selects its pods by. A StatefulSet's selector is immutable, so these labels must not change. */}}
{{- define "database.selectorLabels" -}}
app: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: database
{{- end }}

{{/* Labels of every pod of the StatefulSet. They do not contain the chart's version, so that a new chart does not restart pods by itself. */}}
{{- define "database.podLabels" -}}
{{ include "database.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels of every object, by its component: (list . "backup"). */}}
{{- define "database.labels" -}}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "database.jobLabels" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end }}

{{/* Labels of the Jobs' pods, by component. No Service or StatefulSet selects them. */}}
{{- define "database.jobLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
{{- end }}

{{/* The image. The default tag is the chart's appVersion. */}}
{{- define "database.image" -}}
{{- $image := .Values.image | default "docker.io/library/postgres" -}}
{{- if regexMatch "[:@]" ($image | splitList "/" | last) }}{{ $image }}{{ else }}{{ $image }}:{{ .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The name of the database. Some release names are reserved for databases and roles. */}}
{{- define "database.name" -}}
{{- $own := has .Release.Name (list "postgres" "template0" "template1" "replicator" "exporter") | ternary (printf "%s-db" .Release.Name) .Release.Name -}}
{{ .Values.name | default $own }}
{{- end }}

{{- define "database.owner" -}}
{{ .Values.owner | default (include "database.name" .) }}
{{- end }}

{{- define "database.port" -}}
{{ .Values.port | default 5432 | int64 }}
{{- end }}

{{- define "database.replicas" -}}
{{ .Values.replicas | default 1 | int64 }}
{{- end }}

{{/* Maximum number of pods. */}}
{{- define "database.maxReplicas" -}}
{{- $autoscaling := .Values.autoscaling | default dict -}}
{{- $replicas := include "database.replicas" . | int64 -}}
{{- if $autoscaling.enabled }}{{ max $replicas ($autoscaling.maxReplicas | default 5 | int64) }}{{ else }}{{ $replicas }}{{ end }}
{{- end }}

{{/* Replicas of the StatefulSet. With an autoscaler: the number that the autoscaler set last. */}}
{{- define "database.wanted" -}}
{{- $replicas := include "database.replicas" . | int64 -}}
{{- if (.Values.autoscaling | default dict).enabled -}}
{{- $live := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "database.fullname" .) -}}
{{- $now := dig "spec" "replicas" $replicas ($live | default dict) | int64 -}}
{{ min (max $replicas $now) (include "database.maxReplicas" . | int64) }}
{{- else -}}
{{ $replicas }}
{{- end }}
{{- end }}

{{- define "database.secret" -}}
{{ .Values.existingSecret | default (include "database.part" (list . "credentials")) }}
{{- end }}

{{/* Ordinal of the pod that is the primary. */}}
{{- define "database.primary" -}}
{{- $primary := .Values.primary | default 0 | int64 -}}
{{- if ge $primary (include "database.replicas" . | int64) }}{{ fail (printf "primary: there is no pod %d: replicas is %s" $primary (include "database.replicas" .)) }}{{ end -}}
{{ $primary }}
{{- end }}

{{/* Format of the hosts of the pods by ordinal. They resolve also while a pod is not ready. The port is 5432. */}}
{{- define "database.peer" -}}
{{ include "database.fullname" . }}-%d.{{ include "database.part" (list . "pods") }}.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "database.primaryHost" -}}
{{ printf (include "database.peer" .) (include "database.primary" . | int) }}
{{- end }}

{{/* "true" if a backup is to be restored into an empty volume. */}}
{{- define "database.restores" -}}
{{- if ne (.Values.restoreFrom | default "none") "none" }}true{{ end -}}
{{- end }}

{{/* "true" if the release needs the claim for backups. */}}
{{- define "database.hasBackups" -}}
{{- $backup := .Values.backup | default dict -}}
{{- $enabled := ternary $backup.enabled true (kindIs "bool" $backup.enabled) -}}
{{- $snapshot := ternary .Values.snapshotOnDelete true (kindIs "bool" .Values.snapshotOnDelete) -}}
{{- if or $enabled $snapshot $backup.request (include "database.restores" .) }}true{{ end -}}
{{- end }}

{{/* OpenShift assigns the IDs itself. */}}
{{- define "database.user" -}}
{{- if not .Values.openShift }}{{ .Values.runAsUser | default 999 | int64 }}{{ end -}}
{{- end }}

{{- define "database.podSecurity" -}}
{{- $user := include "database.user" . -}}
runAsNonRoot: true
{{- if $user }}
runAsUser: {{ $user }}
runAsGroup: {{ $user }}
fsGroup: {{ $user }}
{{- end }}
# Changes the group of the volume once, not of each file at every start.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "database.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{- define "database.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The spec of a Job that runs one of the scripts against the primary: (dict "root" . "script" "init.sh"
"component" "init" "deadline" 300). Optional keys: "args", "env", "settings" (a ConfigMap), "secret" (mounted), "scripts"
(a ConfigMap), "statements" and "backups" (both mounted).
*/}}
{{- define "database.job" -}}
{{- $root := .root -}}
activeDeadlineSeconds: {{ int64 .deadline }}
backoffLimit: {{ .retries | default 2 }}
{{- if ne .component "backup" }}
# A failed Job is kept for a day, for its log. Backups are kept longer, because their pods report the list of backups.
ttlSecondsAfterFinished: 86400
{{- end }}
template:
  metadata:
    labels:
      {{- include "database.jobLabels" (list $root .component) | nindent 6 }}
    {{- with $root.Values.jobAnnotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    restartPolicy: Never
    automountServiceAccountToken: false
    {{- with include "database.placement" $root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    securityContext:
      {{- include "database.podSecurity" $root | nindent 6 }}
    containers:
      - name: {{ .component }}
        image: {{ include "database.image" $root | quote }}
        imagePullPolicy: {{ $root.Values.imagePullPolicy | default "IfNotPresent" }}
        command: ["sh", "/scripts/{{ .script }}"]
        {{- with .args }}
        args:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        # Copies the last output into the pod's status. The operator reports it if the Job fails.
        terminationMessagePolicy: FallbackToLogsOnError
        env:
          - name: PGHOST
            value: {{ include "database.primaryHost" $root | quote }}
          - name: PGPORT
            value: "5432"
          - name: PGUSER
            value: postgres
          - name: PGPASSWORD
            valueFrom:
              secretKeyRef:
                name: {{ include "database.secret" $root }}
                key: superuser-password
          - name: PGCONNECT_TIMEOUT
            value: "10"
          - name: PEER
            value: {{ include "database.peer" $root | quote }}
          - name: PRIMARY
            value: {{ include "database.primary" $root | quote }}
          - name: PODS
            value: {{ .pods | default (include "database.maxReplicas" $root) | quote }}
          {{- with .env }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        {{- with .settings }}
        envFrom:
          - configMapRef:
              name: {{ . }}
        {{- end }}
        {{- with ($root.Values.jobs | default dict).resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        securityContext:
          {{- include "database.containerSecurity" $root | nindent 10 }}
        volumeMounts:
          - name: scripts
            mountPath: /scripts
            readOnly: true
          - name: tmp
            mountPath: /tmp
          {{- if .secret }}
          - name: credentials
            mountPath: /run/secrets/database
            readOnly: true
          {{- end }}
          {{- if .statements }}
          - name: statements
            mountPath: /init
            readOnly: true
          {{- end }}
          {{- if .backups }}
          - name: backups
            mountPath: /backups
          {{- end }}
    volumes:
      - name: scripts
        configMap:
          name: {{ .scripts | default (include "database.part" (list $root "scripts")) }}
      - name: tmp
        emptyDir: {}
      {{- if .secret }}
      - name: credentials
        secret:
          secretName: {{ include "database.secret" $root }}
          defaultMode: 0440
      {{- end }}
      {{- with .statements }}
      - name: statements
        configMap:
          name: {{ . }}
      {{- end }}
      {{- if .backups }}
      - name: backups
        persistentVolumeClaim:
          claimName: {{ include "database.part" (list $root "backups") }}
      {{- end }}
{{- end }}

{{/* Whether an upgrade changes the image. True also if the live StatefulSet cannot be read. */}}
{{- define "database.otherImage" -}}
{{- $live := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "database.fullname" .) -}}
{{- $containers := dig "spec" "template" "spec" "containers" list ($live | default dict) -}}
{{- $same := false -}}
{{- range $containers }}{{ if and (eq .name "postgresql") (eq .image (include "database.image" $)) }}{{ $same = true }}{{ end }}{{ end -}}
{{- if not $same }}true{{ end -}}
{{- end }}

{{/* Environment variables for the scripts of a server's pod. */}}
{{- define "database.podEnv" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: DATABASE_HOME
  value: /var/lib/database
- name: DATABASE_LOCALE
  value: {{ (.Values.init | default dict).locale | default "C" | quote }}
- name: CONFIG
  value: /etc/database
- name: PEER
  value: {{ include "database.peer" . | quote }}
{{- end }}

{{/* Volume mounts of a server's pod. */}}
{{- define "database.podMounts" -}}
- name: data
  mountPath: /var/lib/database
- name: scripts
  mountPath: /scripts
  readOnly: true
- name: config
  mountPath: /etc/database
  readOnly: true
- name: cluster
  mountPath: /etc/cluster
  readOnly: true
- name: credentials
  mountPath: /run/secrets/database
  readOnly: true
- name: run
  mountPath: /run/database
- name: tmp
  mountPath: /tmp
- name: shm
  mountPath: /dev/shm
{{- end }}
