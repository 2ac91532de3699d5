{{/*
The lock of a job: a Lease of the same name in every mode and every revision. Its container runs under it, by
`jobwright lock run`: a new one starts when nothing of the old one is left, also if the old pod is still terminating.
Takes a dict: root, name, and fullname.
*/}}
{{- define "release-hooks.lockName" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.start" .) "end" .name) -}}
{{- end -}}

{{- define "release-hooks.isLocked" -}}
{{- if (include "release-hooks.settings" .root | fromYaml).lock.enabled -}}true{{- end -}}
{{- end -}}

{{/*
A pod spec whose container runs under the lock, as YAML. Takes what release-hooks.job takes, and spec.
*/}}
{{- define "release-hooks.lockedSpec" -}}
{{- $lock := (include "release-hooks.settings" .root | fromYaml).lock -}}
{{- $spec := deepCopy .spec -}}
{{- if ne (len ($spec.containers | default list)) 1 -}}
{{- fail (printf "releaseHooks.lock: job %s has %d containers: only one of them could hold the lock" .name (len ($spec.containers | default list))) -}}
{{- end -}}
{{- $container := first $spec.containers -}}
{{- if not $container.command -}}
{{- fail (printf "releaseHooks.lock: container %s of job %s has no command: the lock cannot know what its image runs" $container.name .name) -}}
{{- end -}}
{{- $run := list "/jobwright-lock/jobwright" "lock" "run" "--name" (include "release-hooks.lockName" .) "--wait" (printf "%ss" (include "release-hooks.deadline" .)) "--" -}}
{{- $_ := set $container "command" (concat $run $container.command) -}}
{{- $mount := dict "name" "jobwright-lock" "mountPath" "/jobwright-lock" -}}
{{- $_ := set $container "volumeMounts" (append ($container.volumeMounts | default list) (merge (dict "readOnly" true) $mount)) -}}
{{- $security := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- $installer := dict "name" "install-jobwright" "image" $lock.image "args" (list "lock" "install" "/jobwright-lock") "volumeMounts" (list $mount) "securityContext" $security -}}
{{- $_ := set $spec "initContainers" (append ($spec.initContainers | default list) $installer) -}}
{{- $_ := set $spec "volumes" (append ($spec.volumes | default list) (dict "name" "jobwright-lock" "emptyDir" dict)) -}}
{{- $_ := set $spec "containers" (list $container) -}}
{{- /* It talks to the API. */ -}}
{{- $_ := set $spec "automountServiceAccountToken" true -}}
{{- toYaml $spec -}}
{{- end -}}

{{/*
What the account of a job may do with its lock, if the account is its own. Takes what release-hooks.job takes.
*/}}
{{- define "release-hooks.lockRoles" -}}
{{- $account := include "release-hooks.account" . | fromYaml -}}
{{- if and (include "release-hooks.isLocked" .) $account.create -}}
{{- $name := include "release-hooks.serviceAccountName" . -}}
{{- $annotations := include "release-hooks.accountAnnotations" . -}}
{{- $group := "rbac.authorization.k8s.io" -}}
{{- $rules := list
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "create"))
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "get" "update") "resourceNames" (list (include "release-hooks.lockName" .)))
-}}
{{- $subjects := list (dict "kind" "ServiceAccount" "name" $name "namespace" .root.Release.Namespace) -}}
{{- range $index, $more := list
  (dict "kind" "Role" "rules" $rules)
  (dict "kind" "RoleBinding" "roleRef" (dict "apiGroup" $group "kind" "Role" "name" $name) "subjects" $subjects)
-}}
{{- if $index }}
---
{{ end -}}
apiVersion: {{ $group }}/v1
metadata:
  name: {{ $name | quote }}
  namespace: {{ $.root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" $ | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
{{ toYaml $more }}
{{- end -}}
{{- end -}}
{{- end -}}
