{{/*
A whole job from a pod template: a hook, a plain Job, or a ReleaseJob, as the mode says. Takes a dict:
  root         the root context
  name         what the job is called within the release
  template     its pod template: a map, or YAML
  phase        pre (usual) or post
  run          OnChange (usual) or Always; a hook always runs, a plain job with Always has a name for every revision
  labels, annotations                                     more of them, for the Job
  ttlSecondsAfterFinished, deadlineSeconds, backoffLimit  instead of the chart's; a TTL of Never keeps the Job
  weight       the order among hooks, 10 by default
  serviceAccount                                          create, name, annotations: instead of the chart's
  fullname                                                instead of the release's name
A plain job has a TTL only if it has its own: Argo CD and Flux recreate a Job that has expired.
*/}}
{{- define "release-hooks.job" -}}
{{- $settings := include "release-hooks.settings" .root | fromYaml -}}
{{- $mode := include "release-hooks.mode" .root -}}
{{- $_ := include "release-hooks.run" . -}}
{{- $name := include "release-hooks.name" . -}}
{{- $template := include "release-hooks.template" . | fromYaml -}}
{{- if eq $mode "releasejob" -}}
{{- include "release-hooks.releaseJob" . -}}
{{- else -}}
{{- $annotations := include "release-hooks.job.annotations" . | fromYaml -}}
{{- $annotations = merge (deepCopy (.annotations | default dict)) $annotations -}}
{{- $ttl := include "release-hooks.ttl" . -}}
{{- $backoff := include "release-hooks.ownNumber" (dict "job" . "key" "backoffLimit" "minimum" 0) | default (toString $settings.backoffLimit) -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $name | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" . | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  backoffLimit: {{ $backoff }}
  activeDeadlineSeconds: {{ include "release-hooks.deadline" . }}
  {{- with $ttl }}
  ttlSecondsAfterFinished: {{ . }}
  {{- end }}
  {{- if eq $mode "plain" }}
  {{- /* With a selector of its own, `helm upgrade --force` can put the same Job in its own place, also while it runs. */}}
  {{- $own := dict "release-hooks/job" $name "job-name" $name "batch.kubernetes.io/job-name" $name }}
  {{- $metadata := $template.metadata | default dict }}
  {{- $_ := set $metadata "labels" (merge $own ($metadata.labels | default dict)) }}
  {{- $_ := set $template "metadata" $metadata }}
  manualSelector: true
  selector:
    matchLabels:
      release-hooks/job: {{ $name | quote }}
  {{- end }}
  template:
    {{- toYaml $template | nindent 4 }}
{{- end -}}
{{- end -}}

{{/*
The TTL of a job: its own, or for all but plain jobs the chart's; empty for none. Takes what release-hooks.job takes.
*/}}
{{- define "release-hooks.ttl" -}}
{{- if ne (toString .ttlSecondsAfterFinished) "Never" -}}
{{- $own := include "release-hooks.ownNumber" (dict "job" . "key" "ttlSecondsAfterFinished" "minimum" 0) -}}
{{- if or (ne $own "") (eq (include "release-hooks.mode" .root) "plain") -}}
{{- $own -}}
{{- else -}}
{{- (include "release-hooks.settings" .root | fromYaml).ttlSecondsAfterFinished -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "release-hooks.labels" -}}
{{- $own := dict "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/instance" .root.Release.Name -}}
{{- toYaml (merge (deepCopy (.labels | default dict)) $own) -}}
{{- end -}}

{{/*
The ServiceAccount of a job, if it has one of its own. A hook's is a copy that nobody else uses, because it comes and goes.
*/}}
{{- define "release-hooks.serviceAccount" -}}
{{- $account := include "release-hooks.account" . | fromYaml -}}
{{- if $account.create -}}
{{- $annotations := include "release-hooks.accountAnnotations" . | fromYaml -}}
{{- $annotations = merge (deepCopy ($account.annotations | default dict)) $annotations -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "release-hooks.serviceAccountName" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" . | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* What makes the account of a job, and its roles, come before it: also before a job with a weight below 1. */}}
{{- define "release-hooks.accountAnnotations" -}}
{{- $weight := min 0 (sub (include "release-hooks.weight" . | int64) 1) -}}
{{- include "release-hooks.serviceAccount.annotations" (dict "root" .root "name" .name "phase" .phase "weight" $weight) -}}
{{- end -}}

{{/*
A small object that changes with a hook. Hooks are no part of what Argo CD compares, so without it a commit that changes
only the job would run nothing.
*/}}
{{- define "release-hooks.fingerprint" -}}
{{- if eq (include "release-hooks.mode" .root) "hook" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "release-hooks.named" (dict "text" (include "release-hooks.start" .) "limit" 200 "end" (printf "%s-fingerprint" .name)) | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" . | nindent 4 }}
data:
  fingerprint: {{ include "release-hooks.job" . | sha256sum | quote }}
{{- end -}}
{{- end -}}

{{/*
All that a job needs, in one: its account, the roles of its lock, its fingerprint and itself. Takes what release-hooks.job takes.
*/}}
{{- define "release-hooks.resources" -}}
{{- range list "release-hooks.serviceAccount" "release-hooks.lockRoles" "release-hooks.fingerprint" "release-hooks.job" }}
{{- with include . $ }}
---
{{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The same as a ReleaseJob, for clusters with the operator.
*/}}
{{- define "release-hooks.releaseJob" -}}
apiVersion: jobwright.io/v1alpha1
kind: ReleaseJob
metadata:
  name: {{ include "release-hooks.name" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  release: {{ .root.Release.Name | quote }}
  phase: {{ include "release-hooks.phase" . | title }}
  {{- with .root.Chart.AppVersion }}
  version: {{ . | quote }}
  {{- end }}
  revision: {{ .root.Release.Revision | quote }}
  run: {{ ternary "Always" "OncePerFingerprint" (eq (include "release-hooks.run" .) "Always") }}
  deadlineSeconds: {{ include "release-hooks.deadline" . }}
  {{- with include "release-hooks.ttl" . }}
  keep:
    finishedSeconds: {{ . }}
  {{- end }}
  template:
    {{- include "release-hooks.template" . | nindent 4 }}
{{- end -}}
