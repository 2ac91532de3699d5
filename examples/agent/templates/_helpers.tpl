{{/* The Service and the Deployment of the server. */}}
{{- define "agent.server" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .) "form" "service") -}}
{{- end -}}

{{- define "agent.instance" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .)) -}}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: agent
app.kubernetes.io/instance: {{ include "agent.instance" . | quote }}
{{- end -}}

{{- define "agent.labels" -}}
{{ include "agent.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: webhook-server
{{- end -}}

{{/* The Secret of the pair that is served. */}}
{{- define "agent.secret" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .) "limit" 200 "end" "certificate") -}}
{{- end -}}

{{/* The name of something that may have 52 characters, as a CronJob. Takes a dict: root, name. */}}
{{- define "agent.name" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .root) "limit" 52 "end" .name) -}}
{{- end -}}

{{/* The webhook's configuration, of which there is one in a cluster by a name. */}}
{{- define "agent.configuration" -}}
{{- include "release-hooks.named" (dict "text" (printf "%s-%s" .Release.Namespace (include "release-hooks.fullname" .)) "limit" 200) -}}
{{- end -}}

{{/* An image. Takes a dict: root, image. */}}
{{- define "agent.image" -}}
image: {{ printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- end -}}

{{/* What every container here may not do. */}}
{{- define "agent.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "agent.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/*
Whether the certificate comes when everything else is healthy already, as Argo CD's PostSync does: then the server has to be
ready without it, or both would wait for each other.
*/}}
{{- define "agent.certificateComesLater" -}}
{{- if contains "PostSync" (index (.Values.initCertJob.annotations | default dict) "argocd.argoproj.io/hook" | default "") -}}true{{- end -}}
{{- end -}}

{{/*
Whether the certificate is made in two steps: before the server starts, and after its webhook is there. Only hooks can.
*/}}
{{- define "agent.twoStages" -}}
{{- if and (eq (include "release-hooks.mode" .) "hook") (not (include "agent.certificateComesLater" .)) -}}true{{- end -}}
{{- end -}}

{{/* The TTL of a job, or Never: null keeps a finished Job. Takes the values of the job. */}}
{{- define "agent.ttl" -}}
{{- if kindIs "invalid" .ttlSecondsAfterFinished -}}Never{{- else -}}{{ int64 .ttlSecondsAfterFinished }}{{- end -}}
{{- end -}}

{{/* Whether jobs notice a forced deploy. */}}
{{- define "agent.noticesForce" -}}
{{- if eq .Values.onForce "Renew" -}}true{{- end -}}
{{- end -}}

{{/* The arguments by which a job notices a forced deploy, as a YAML list. Takes the root context. */}}
{{- define "agent.markArguments" -}}
{{- if include "agent.noticesForce" . -}}
{{- list "--mark" (printf "configmap:%s" (include "release-hooks.markName" (dict "root" .))) | toYaml -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/*
Whether a job needs a second Job for each deploy, which ends immediately unless the deploy was forced: a plain Job that
exists does not run again. Takes a dict: root, run.
*/}}
{{- define "agent.needsForceJob" -}}
{{- if and (include "agent.noticesForce" .root) (eq (include "release-hooks.mode" .root) "plain") (ne .run "Always") -}}true{{- end -}}
{{- end -}}

{{/*
What differs between two deploys, for the plain Jobs that run with each of them; empty where jobs do not notice a forced
deploy. Takes the root context.
*/}}
{{- define "agent.identity" -}}
{{- if and (include "agent.noticesForce" .) (eq (include "release-hooks.mode" .) "plain") -}}
{{- include "release-hooks.identity" (dict "root" . "content" (toJson .Values)) -}}
{{- end -}}
{{- end -}}

{{/*
The pod template of a job that runs jobwright. Takes a dict: root, job (its values), name, account, args, and identity
where each deploy is another job.
*/}}
{{- define "agent.jobTemplate" -}}
metadata:
  labels:
    app.kubernetes.io/component: webhook-server
    app.kubernetes.io/instance: {{ include "agent.instance" .root | quote }}
    # Another version of the chart is another job.
    helm.sh/chart: {{ regexReplaceAllLiteral "[-._]+$" (printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") | trunc 63) "" | quote }}
  {{- with .identity }}
  annotations:
    # Another deploy is another job.
    jobwright.io/identity: {{ . | quote }}
  {{- end }}
spec:
  {{- with .account }}
  serviceAccountName: {{ . | quote }}
  {{- end }}
  restartPolicy: Never
  {{- include "agent.podSecurity" . | nindent 2 }}
  {{- with .job.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .job.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
  - name: {{ .name }}
    {{- include "agent.image" (dict "root" .root "image" .job.image) | nindent 4 }}
    args:
    {{- toYaml (concat .args (.job.args | default list)) | nindent 4 }}
    {{- include "agent.containerSecurity" . | nindent 4 }}
    {{- with .job.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end -}}

{{/*
The same job, from time to time. It holds the same lock, so that two never work at once.
Takes a dict: root, name, schedule, template.
*/}}
{{- define "agent.cronJob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "agent.name" . | quote }}
  labels:
    {{- include "agent.labels" .root | nindent 4 }}
spec:
  schedule: {{ .schedule | quote }}
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: {{ include "release-hooks.deadline" (dict "root" .root) }}
      template:
        {{- .template | nindent 8 }}
{{- end -}}
