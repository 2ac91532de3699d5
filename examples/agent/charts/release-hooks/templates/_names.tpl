{{/*
What everything of a chart is called first: the release. Below an umbrella chart the path to the chart follows it, such as
`shop-api`, by aliases where there are any, so that a chart that is there twice has every name once. Another name is
releaseHooks.fullname. Takes the root context.
*/}}
{{- define "release-hooks.fullname" -}}
{{- $given := (include "release-hooks.settings" . | fromYaml).fullname -}}
{{- if $given -}}
{{- tpl $given . -}}
{{- else -}}
{{- $path := splitList "/charts/" (dir .Template.BasePath) | rest -}}
{{- prepend $path .Release.Name | join "-" -}}
{{- end -}}
{{- end -}}

{{/*
A name from a text and an end. What Kubernetes does not accept there is cut from the text or replaced, never from the end,
and a hash of the whole text then keeps two names apart. Takes a dict:
  text   usually release-hooks.fullname
  end    what the object is; none for the text alone
  limit  the length, 63 by default
  form   subdomain (the default, with dots), label (without) or service (without, and with a letter first)
*/}}
{{- define "release-hooks.named" -}}
{{- $form := .form | default "subdomain" -}}
{{- $end := ternary (printf "-%s" .end) "" (not (empty .end)) -}}
{{- $limit := ternary (int .limit) 63 (hasKey . "limit") -}}
{{- $text := .text | lower | replace "_" "-" -}}
{{- if ne $form "subdomain" -}}
{{- $text = $text | replace "." "-" -}}
{{- end -}}
{{- if and (eq $form "service") (regexMatch "^[0-9]" $text) -}}
{{- $text = printf "n%s" $text -}}
{{- end -}}
{{- if or (ne $text .text) (gt (len (printf "%s%s" $text $end)) $limit) -}}
{{- $room := sub $limit (add (len $end) 9) -}}
{{- if lt $room 1 -}}
{{- fail (printf "%s is too long for a name: %d characters fit" .end (sub $limit 11)) -}}
{{- end -}}
{{- $text = printf "%s-%s" (regexReplaceAllLiteral "[-.]+$" ($text | trunc (int $room)) "") (.text | sha256sum | trunc 8) -}}
{{- end -}}
{{- printf "%s%s" $text $end -}}
{{- end -}}

{{/* What the names of a job begin with. Takes a dict: root, and fullname. */}}
{{- define "release-hooks.start" -}}
{{- .fullname | default (include "release-hooks.fullname" .root) -}}
{{- end -}}

{{/*
The pod template of a job as it will be: with its account, a wait for a bundled database, and no restarts in place, as YAML.
Takes what release-hooks.job takes.
*/}}
{{- define "release-hooks.template" -}}
{{- $template := .template -}}
{{- if kindIs "string" $template -}}
{{- $template = fromYaml $template -}}
{{- if hasKey $template "Error" -}}
{{- fail (printf "the pod template of job %s: %s" .name $template.Error) -}}
{{- end -}}
{{- end -}}
{{- $template = deepCopy ($template | default dict) -}}
{{- if not $template.spec -}}
{{- fail (printf "the pod template of job %s has no spec" .name) -}}
{{- end -}}
{{- $spec := $template.spec -}}
{{- if not $spec.restartPolicy -}}
{{- $_ := set $spec "restartPolicy" "Never" -}}
{{- end -}}
{{- if not $spec.serviceAccountName -}}
{{- $_ := set $spec "serviceAccountName" (include "release-hooks.serviceAccountName" .) -}}
{{- end -}}
{{- $settings := include "release-hooks.settings" .root | fromYaml -}}
{{- if and (eq $settings.database "bundled") (ne (include "release-hooks.phase" .) "post") -}}
{{- $_ := set $spec "initContainers" (prepend ($spec.initContainers | default list) (include "release-hooks.waiter" . | fromYaml)) -}}
{{- end -}}
{{- if include "release-hooks.isLocked" . -}}
{{- $_ := set $template "spec" (include "release-hooks.lockedSpec" (merge (dict "spec" $spec) .) | fromYaml) -}}
{{- end -}}
{{- toYaml $template -}}
{{- end -}}

{{/*
An init container that waits for a database of the same release.
*/}}
{{- define "release-hooks.waiter" -}}
{{- $settings := include "release-hooks.settings" .root | fromYaml -}}
{{- $wait := $settings.waitFor -}}
{{- if and (not $wait.command) (not $wait.host) -}}
{{- fail "releaseHooks.database is bundled: releaseHooks.waitFor.host names its Service, or releaseHooks.waitFor.command waits for it" -}}
{{- end -}}
name: wait-for-database
image: {{ $wait.image | quote }}
command:
{{- if $wait.command }}
{{ toYaml $wait.command }}
{{- else }}
- sh
- -c
- until nc -w 2 {{ tpl $wait.host .root }} {{ int $wait.port }} -e true; do sleep 1; done
{{- end }}
{{- end -}}

{{/*
The name of a job. It carries the mode, so that another mode is another object and nothing changes what it is.
A hook has one name for ever; a plain job has one for its content, of which the hash is never cut away.
Takes a dict: root, name, template (the pod template to hash), run (Always: another name with every revision).
*/}}
{{- define "release-hooks.name" -}}
{{- $start := include "release-hooks.start" . -}}
{{- $mode := include "release-hooks.mode" .root -}}
{{- if eq $mode "hook" -}}
{{- include "release-hooks.named" (dict "text" $start "end" (printf "%s-hook" .name)) -}}
{{- else if eq $mode "plain" -}}
{{- $content := include "release-hooks.template" . -}}
{{- if eq (include "release-hooks.run" .) "Always" -}}
{{- $content = printf "%s\nrevision: %d" $content (int .root.Release.Revision) -}}
{{- end -}}
{{- include "release-hooks.named" (dict "text" $start "end" (printf "%s-%s" .name ($content | sha256sum | trunc 10))) -}}
{{- else -}}
{{- include "release-hooks.named" (dict "text" $start "end" .name) -}}
{{- end -}}
{{- end -}}

{{/*
The ServiceAccount of a job: one of its own unless told otherwise, and the namespace's default if none is named.
Takes a dict: root, name, and serviceAccount (create, name, annotations) where a job has its own.
*/}}
{{- define "release-hooks.serviceAccountName" -}}
{{- $account := include "release-hooks.account" . | fromYaml -}}
{{- if not $account.create -}}
{{- $account.name | default "default" -}}
{{- else -}}
{{- $kind := ternary "hook" "job" (eq (include "release-hooks.mode" .root) "hook") -}}
{{- if $account.name -}}
{{- include "release-hooks.named" (dict "text" $account.name "end" $kind) -}}
{{- else -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.start" .) "end" (printf "%s-%s" .name $kind)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
