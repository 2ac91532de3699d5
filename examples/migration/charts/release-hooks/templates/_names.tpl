{{/*
What a job is called before its mode is part of it. Takes a dict: root, name, and fullname instead of the release's name.
*/}}
{{- define "release-hooks.base" -}}
{{- printf "%s-%s" (.fullname | default .root.Release.Name) .name -}}
{{- end -}}

{{/*
Cuts a text, leaves no dash at the cut, and puts an end to it. Takes a dict: text, limit, end.
*/}}
{{- define "release-hooks.cut" -}}
{{- printf "%s-%s" (regexReplaceAllLiteral "[-.]+$" (.text | trunc (int .limit)) "") .end -}}
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
{{- $base := include "release-hooks.base" . -}}
{{- $mode := include "release-hooks.mode" .root -}}
{{- if eq $mode "hook" -}}
{{- include "release-hooks.cut" (dict "text" $base "limit" 58 "end" "hook") -}}
{{- else if eq $mode "plain" -}}
{{- $content := include "release-hooks.template" . -}}
{{- if eq (include "release-hooks.run" .) "Always" -}}
{{- $content = printf "%s\nrevision: %d" $content (int .root.Release.Revision) -}}
{{- end -}}
{{- include "release-hooks.cut" (dict "text" $base "limit" 52 "end" ($content | sha256sum | trunc 10)) -}}
{{- else -}}
{{- $base | trunc 63 | trimSuffix "-" -}}
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
{{- $base := $account.name | default (include "release-hooks.base" .) -}}
{{- $mode := include "release-hooks.mode" .root -}}
{{- include "release-hooks.cut" (dict "text" $base "limit" 52 "end" (ternary "hook" "job" (eq $mode "hook"))) -}}
{{- end -}}
{{- end -}}
