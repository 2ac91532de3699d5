{{/*
The annotations that make a job a hook; nothing in the other modes. The same on install and on upgrade, always: what
changed between the two would change what the object is. None of Argo CD's: it reads these.
Takes the root context, or a dict: root, phase (pre, the default, or post), weight (10 by default).
*/}}
{{- define "release-hooks.job.annotations" -}}
{{- $root := .root | default . -}}
{{- if eq (include "release-hooks.mode" $root) "hook" -}}
helm.sh/hook: {{ include "release-hooks.events" . }}
helm.sh/hook-weight: {{ include "release-hooks.weight" . | quote }}
helm.sh/hook-delete-policy: before-hook-creation
{{- end -}}
{{- end -}}

{{/*
The annotations of what a hook needs to be there before it, and no other pod uses: its account, its roles, its Secret.
It is deleted when the hooks have succeeded. Its weight is 0 by default: below the weight of the hook, which needs it.
*/}}
{{- define "release-hooks.serviceAccount.annotations" -}}
{{- $root := .root | default . -}}
{{- if eq (include "release-hooks.mode" $root) "hook" -}}
helm.sh/hook: {{ include "release-hooks.events" . }}
helm.sh/hook-weight: {{ include "release-hooks.ownNumber" (dict "job" . "key" "weight" "minimum" -2147483648) | default "0" | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
{{- end -}}

{{- define "release-hooks.events" -}}
{{- ternary "post-install,post-upgrade" "pre-install,pre-upgrade" (eq (include "release-hooks.phase" .) "post") -}}
{{- end -}}
