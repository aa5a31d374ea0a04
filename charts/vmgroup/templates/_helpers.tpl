{{/*
In Helm, a null in the values removes a chart's default. Required defaults are therefore repeated
where they are used, and "image: null" renders what "image: {}" does.
*/}}

{{/* Labels that select the release's objects. */}}
{{- define "vmgroup.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* Labels of every object. */}}
{{- define "vmgroup.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "vmgroup.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The number of machines. */}}
{{- define "vmgroup.replicas" -}}
{{ int64 (.Values.replicas | default 1) }}
{{- end }}

{{/* The name of the CronJob, at most 52 characters. */}}
{{- define "vmgroup.repair" -}}
{{- $name := printf "%s-repair" .Release.Name -}}
{{- if gt (len $name) 52 }}{{ printf "%s-%s" (trunc 43 $name | trimSuffix "-") (sha256sum $name | trunc 8) }}{{ else }}{{ $name }}{{ end }}
{{- end }}

{{/* The location of the machines, which cannot change after the first one was created. */}}
{{- define "vmgroup.location" -}}
{{- $vcenter := .Values.vcenter | default dict -}}
credentials.secretName: {{ (.Values.credentials | default dict).secretName | default "vc-creds" | quote }}
vcenter.datacenter: {{ $vcenter.datacenter | default "" | quote }}
vcenter.folder: {{ $vcenter.folder | default "vm" | trimSuffix "/" | quote }}
{{- end }}

{{/* The image with its digest or tag. */}}
{{- define "vmgroup.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/vmware/govc" }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default (printf "v%s-runner" .Chart.AppVersion) }}{{ end }}
{{- end }}

{{/*
Metadata and spec of a pod that runs vms.sh. Argument: a list of the root context, the script's arguments and the
pod's component.
*/}}
{{- define "vmgroup.pod" -}}
{{- $ := index . 0 -}}
{{- $vcenter := $.Values.vcenter | default dict -}}
{{- $location := fromYaml (include "vmgroup.location" $) -}}
{{- $secret := index $location "credentials.secretName" -}}
metadata:
  labels:
    {{- include "vmgroup.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ index . 2 }}
  {{- with $.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  # Enough time for govc to finish a running operation.
  terminationGracePeriodSeconds: 30
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- if not $.Values.openShift }}
    # A user of govc's image.
    runAsUser: 10001
    runAsGroup: 10001
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: govc
      image: {{ include "vmgroup.image" $ | quote }}
      imagePullPolicy: {{ ($.Values.image | default dict).pullPolicy | default "IfNotPresent" }}
      command: {{ concat (list "sh" "/scripts/vms.sh") (index . 1) | toJson }}
      # The script writes its result here, for the VmGroup's status.
      terminationMessagePolicy: FallbackToLogsOnError
      env:
        # Only govc reads the Secret, from its environment. It is optional, because a group whose Secret never
        # existed can be deleted. The other Jobs fail without it.
        - name: GOVC_URL
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_HOST
              optional: true
        - name: GOVC_USERNAME
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_USER
              optional: true
        - name: GOVC_PASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_PASS
              optional: true
        - name: GOVC_INSECURE
          value: {{ $vcenter.insecure | default false | quote }}
        {{- if $vcenter.caConfigMap }}
        - name: GOVC_TLS_CA_CERTS
          value: /certificates/ca.crt
        {{- end }}
        {{- with $vcenter.datacenter }}
        - name: GOVC_DATACENTER
          value: {{ . | quote }}
        {{- end }}
        {{- with $vcenter.resourcePool }}
        - name: GOVC_RESOURCE_POOL
          value: {{ . | quote }}
        {{- end }}
        {{- with $vcenter.datastore }}
        - name: GOVC_DATASTORE
          value: {{ . | quote }}
        {{- end }}
        # govc stores its session here between calls.
        - name: GOVMOMI_HOME
          value: /tmp
        - name: VM_SECRET
          value: {{ $secret | quote }}
        - name: VM_PARENT
          value: {{ index $location "vcenter.folder" | quote }}
        # A namespace contains no dot, so two groups never share a folder.
        - name: VM_FOLDER
          value: {{ printf "%s.%s" $.Release.Namespace $.Release.Name | quote }}
        - name: VM_NAME
          value: {{ $.Release.Name | quote }}
        - name: VM_TEMPLATE
          value: {{ $.Values.template | quote }}
        - name: VM_CPU
          value: {{ int64 $.Values.cpu | quote }}
        - name: VM_MEMORY
          value: {{ mul (int64 $.Values.memory) 1024 | quote }}
        - name: VM_REPLICAS
          value: {{ include "vmgroup.replicas" $ | quote }}
        - name: VM_PARALLEL
          value: {{ int64 (($.Values.jobs | default dict).parallelClones | default 4) | quote }}
        - name: VM_RECORDS
          value: /records
        - name: VM_REPORT
          value: /dev/termination-log
      {{- with $.Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: ["ALL"]
      volumeMounts:
        - name: scripts
          mountPath: /scripts
          readOnly: true
        - name: records
          mountPath: /records
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- if $vcenter.caConfigMap }}
        - name: certificates
          mountPath: /certificates
          readOnly: true
        {{- end }}
  volumes:
    - name: scripts
      configMap:
        name: {{ $.Release.Name | quote }}
    - name: records
      projected:
        sources:
          {{- range $record, $key := dict "location" "vcenter.folder" "state" "replicas" "deletion" "name" }}
          - configMap:
              name: {{ printf "%s-%s" $.Release.Name $record | quote }}
              optional: true
              items:
                - key: {{ $key }}
                  path: {{ $record }}
          {{- end }}
    - name: tmp
      emptyDir:
        # In memory, because the session grants the same access as the password.
        medium: Memory
        sizeLimit: 16Mi
    {{- with $vcenter.caConfigMap }}
    - name: certificates
      configMap:
        name: {{ . | quote }}
    {{- end }}
  {{- with $.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
