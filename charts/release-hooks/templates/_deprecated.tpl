{{/*
Names that helpers of this kind had elsewhere. They take the root context, and do what their successors do.
*/}}

{{/* Deprecated: use release-hooks.job.annotations. */}}
{{- define "core.job.annotations" -}}
{{- include "release-hooks.job.annotations" . -}}
{{- end -}}

{{/* Deprecated: use release-hooks.job.annotations. */}}
{{- define "core.postgres.job.annotations" -}}
{{- include "release-hooks.job.annotations" . -}}
{{- end -}}

{{/* Deprecated: use release-hooks.serviceAccount.annotations. */}}
{{- define "core.postgres.job.sa.annotations" -}}
{{- include "release-hooks.serviceAccount.annotations" . -}}
{{- end -}}

{{/* Deprecated: use release-hooks.serviceAccountName. Reads config.migration.serviceAccount, as it did. */}}
{{- define "core.postgres.job.serviceAccountName" -}}
{{- $account := ((.Values.config | default dict).migration | default dict).serviceAccount | default dict -}}
{{- include "release-hooks.serviceAccountName" (dict "root" . "name" "migrate" "serviceAccount" $account) -}}
{{- end -}}
