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

{{/* The image with its tag. */}}
{{- define "vmgroup.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $image.repository | default "docker.io/vmware/govc" }}:{{ $image.tag | default (printf "v%s-runner" .Chart.AppVersion) }}
{{- end }}

{{/*
Metadata and spec of a pod that runs vms.sh. Argument: a list of the root context, the script's argument and the
pod's component.
*/}}
{{- define "vmgroup.pod" -}}
{{- $ := index . 0 -}}
{{- $vcenter := $.Values.vcenter | default dict -}}
{{- $secret := ($.Values.credentials | default dict).secretName | default "vc-credentials" -}}
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
    runAsUser: 10001
    runAsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: govc
      image: {{ include "vmgroup.image" $ | quote }}
      imagePullPolicy: {{ ($.Values.image | default dict).pullPolicy | default "IfNotPresent" }}
      command: ["sh", "/scripts/vms.sh", {{ index . 1 | quote }}]
      # The last output of a failed run becomes the VmGroup's lastMessage.
      terminationMessagePolicy: FallbackToLogsOnError
      env:
        # Only govc reads the Secret, from its environment.
        - name: GOVC_URL
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_HOST
        - name: GOVC_USERNAME
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_USER
        - name: GOVC_PASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ $secret | quote }}
              key: VC_PASS
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
        - name: VM_PARENT
          value: {{ $vcenter.folder | default "vm" | trimSuffix "/" | quote }}
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
