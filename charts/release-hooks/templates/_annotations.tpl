{{/*
The annotations that make a job a hook; nothing in the other modes. The same on install and on upgrade, always: what
changed between the two would change what the object is. None of Argo CD's: it reads these.
Takes the root context, or a dict: root, phase (pre, which is usual, or post), weight.
*/}}
{{- define "release-hooks.job.annotations" -}}
{{- $root := .root | default . -}}
{{- if eq (include "release-hooks.mode" $root) "hook" -}}
helm.sh/hook: {{ include "release-hooks.events" . }}
helm.sh/hook-weight: {{ .weight | default 10 | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}
{{- end -}}

{{/*
The annotations of what a hook needs to be there before it, and nobody else uses: its account, its roles, its Secret.
It goes when the hooks have succeeded.
*/}}
{{- define "release-hooks.serviceAccount.annotations" -}}
{{- $root := .root | default . -}}
{{- if eq (include "release-hooks.mode" $root) "hook" -}}
helm.sh/hook: {{ include "release-hooks.events" . }}
helm.sh/hook-weight: {{ .weight | default 0 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
{{- end -}}

{{- define "release-hooks.events" -}}
{{- ternary "post-install,post-upgrade" "pre-install,pre-upgrade" (eq (.phase | default "pre") "post") -}}
{{- end -}}
