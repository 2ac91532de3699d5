{{/*
What a chart has said about its jobs, with defaults, as YAML. Takes the root context.
An unknown key and a wrong type are errors here, because a library chart's schema does not see the values of the chart that
uses it.
*/}}
{{- define "release-hooks.settings" -}}
{{- $given := .Values.releaseHooks -}}
{{- if kindIs "invalid" $given -}}
{{- $given = dict -}}
{{- end -}}
{{- if not (kindIs "map" $given) -}}
{{- fail (printf "releaseHooks is %s: it is a map with mode, database, ttlSecondsAfterFinished, …" (toJson $given)) -}}
{{- end -}}
{{- $defaults := dict
  "mode" "hook"
  "fullname" ""
  "database" "external"
  "ttlSecondsAfterFinished" 3600
  "deployerTimeoutSeconds" 300
  "deadlineSeconds" nil
  "backoffLimit" 0
  "lock" (dict "enabled" false "image" "jobwright/jobwright:0.1.0")
  "serviceAccount" (dict "create" true "name" "" "annotations" dict)
  "waitFor" (dict "host" "" "port" 5432 "image" "busybox:1.37" "command" list)
-}}
{{- range $key, $value := $given -}}
{{- if not (hasKey $defaults $key) -}}
{{- fail (printf "releaseHooks.%s is not known: there are %s" $key (keys $defaults | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- /* null is the default: Helm removes it from the values only where a chart has a value of its own. */ -}}
{{- $settings := deepCopy $defaults -}}
{{- range $key, $value := $given -}}
{{- $default := index $defaults $key -}}
{{- if kindIs "map" $default -}}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) -}}
{{- fail (printf "releaseHooks.%s is %s: it is a map with %s" $key (toJson $value) (keys $default | sortAlpha | join ", ")) -}}
{{- end -}}
{{- range $inner, $value := $value -}}
{{- if not (hasKey $default $inner) -}}
{{- fail (printf "releaseHooks.%s.%s is not known: there are %s" $key $inner (keys $default | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set (index $settings $key) $inner $value -}}
{{- end -}}
{{- end -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $settings $key $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $minimum := dict "ttlSecondsAfterFinished" 0 "deployerTimeoutSeconds" 2 "backoffLimit" 0 -}}
{{- include "release-hooks.checkNumber" (dict "settings" $settings "key" $key "minimum" $minimum) -}}
{{- end -}}
{{- if not (kindIs "invalid" $settings.deadlineSeconds) -}}
{{- include "release-hooks.checkNumber" (dict "settings" $settings "key" "deadlineSeconds" "minimum" 1) -}}
{{- end -}}
{{- $_ := include "release-hooks.integer" (dict "value" $settings.waitFor.port "called" "releaseHooks.waitFor.port" "minimum" 1 "maximum" 65535) -}}
{{- $account := $settings.serviceAccount -}}
{{- $wait := $settings.waitFor -}}
{{- range list
  (list "fullname" $settings.fullname "string" "a text")
  (list "serviceAccount.name" $account.name "string" "a text")
  (list "serviceAccount.annotations" $account.annotations "map" "a map of texts")
  (list "lock.enabled" $settings.lock.enabled "bool" "true or false")
  (list "lock.image" $settings.lock.image "string" "a text")
  (list "waitFor.host" $wait.host "string" "a text")
  (list "waitFor.image" $wait.image "string" "a text")
  (list "waitFor.command" $wait.command "slice" "a list of texts")
-}}
{{- if not (kindIs (index . 2) (index . 1)) -}}
{{- fail (printf "releaseHooks.%s is %s: it is %s" (index . 0) (toJson (index . 1)) (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $account.annotations -}}
{{- if not (kindIs "string" $value) -}}
{{- fail (printf "releaseHooks.serviceAccount.annotations.%s is %s: it is a text" $key (toJson $value)) -}}
{{- end -}}
{{- end -}}
{{- range $index, $word := $wait.command -}}
{{- if not (kindIs "string" $word) -}}
{{- fail (printf "releaseHooks.waitFor.command[%d] is %s: it is a text" $index (toJson $word)) -}}
{{- end -}}
{{- end -}}
{{- if not (kindIs "bool" $settings.serviceAccount.create) -}}
{{- fail (printf "releaseHooks.serviceAccount.create is %s: it is true or false" (toJson $settings.serviceAccount.create)) -}}
{{- end -}}
{{- $gate := (.Values.feature | default dict).migrationHooks -}}
{{- if not (kindIs "invalid" $gate) -}}
{{- if not (has (toString $gate) (list "true" "false")) -}}
{{- fail (printf "feature.migrationHooks is %s: it is true or false" (toJson $gate)) -}}
{{- end -}}
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
{{- $deadline := include "release-hooks.ownNumber" (dict "job" . "key" "deadlineSeconds" "minimum" 1) -}}
{{- if not $deadline -}}
{{- $deadline = ternary (sub $limit 30) $settings.deadlineSeconds (kindIs "invalid" $settings.deadlineSeconds) -}}
{{- end -}}
{{- $deadline = int $deadline -}}
{{- if or (lt $deadline 1) (ge $deadline $limit) -}}
{{- fail (printf "deadlineSeconds is %d: it has to be below deployerTimeoutSeconds (%d), which is the --timeout that the chart is deployed with" $deadline $limit) -}}
{{- end -}}
{{- $deadline -}}
{{- end -}}
