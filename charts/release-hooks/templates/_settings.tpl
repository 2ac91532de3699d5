{{/*
What a chart has said about its jobs, with defaults, as YAML. Takes the root context.
A word that nobody knows is an error here, because a library chart's schema does not see the values of who uses it.
*/}}
{{- define "release-hooks.settings" -}}
{{- $given := .Values.releaseHooks | default dict -}}
{{- if not (kindIs "map" $given) -}}
{{- fail "releaseHooks is a map: mode, database, ttlSecondsAfterFinished, …" -}}
{{- end -}}
{{- $defaults := dict
  "mode" "hook"
  "database" "external"
  "ttlSecondsAfterFinished" 3600
  "deployerTimeoutSeconds" 300
  "deadlineSeconds" nil
  "backoffLimit" 0
  "serviceAccount" (dict "create" true "name" "" "annotations" dict)
  "waitFor" (dict "host" "" "port" 5432 "image" "busybox:1.37" "command" list)
-}}
{{- range $key, $value := $given -}}
{{- if not (hasKey $defaults $key) -}}
{{- fail (printf "releaseHooks.%s is not known: there are %s" $key (keys $defaults | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- $settings := mergeOverwrite $defaults (deepCopy $given) -}}
{{- $gate := (.Values.feature | default dict).migrationHooks -}}
{{- if not (kindIs "invalid" $gate) -}}
{{- $_ := set $settings "mode" (ternary "hook" "plain" (eq (toString $gate) "true")) -}}
{{- end -}}
{{- if not (has $settings.mode (list "hook" "plain" "releasejob")) -}}
{{- fail (printf "releaseHooks.mode is %q: it is hook, plain or releasejob" (toString $settings.mode)) -}}
{{- end -}}
{{- if not (has $settings.database (list "external" "bundled")) -}}
{{- fail (printf "releaseHooks.database is %q: it is external or bundled" (toString $settings.database)) -}}
{{- end -}}
{{- if and (eq $settings.mode "releasejob") (not (.Capabilities.APIVersions.Has "jobwright.io/v1alpha1")) -}}
{{- fail "releaseHooks.mode is releasejob, and the cluster has no ReleaseJobs: install the operator first, or use hook or plain" -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/*
What a job is made as: hook, plain or releasejob. Takes the root context.
A database that comes with the release is not there before it, so its job is a plain one.
*/}}
{{- define "release-hooks.mode" -}}
{{- $settings := include "release-hooks.settings" . | fromYaml -}}
{{- if and (eq $settings.database "bundled") (eq $settings.mode "hook") -}}plain{{- else -}}{{ $settings.mode }}{{- end -}}
{{- end -}}

{{/*
How long a job may take: below what the deployer waits, or a Secret that is not there would hang an Argo CD sync for ever.
Takes a dict: root, and deadlineSeconds where a job has its own.
*/}}
{{- define "release-hooks.deadline" -}}
{{- $settings := include "release-hooks.settings" .root | fromYaml -}}
{{- $limit := int $settings.deployerTimeoutSeconds -}}
{{- $deadline := .deadlineSeconds | default $settings.deadlineSeconds | default (sub $limit 30) | int -}}
{{- if or (lt $deadline 1) (ge $deadline $limit) -}}
{{- fail (printf "deadlineSeconds is %d: it has to be below deployerTimeoutSeconds (%d), which is the --timeout that the chart is deployed with" $deadline $limit) -}}
{{- end -}}
{{- $deadline -}}
{{- end -}}
