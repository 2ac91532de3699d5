{{- /* A hook on installs and upgrades alike, after its account. */ -}}
{{- define "job.annotations" -}}
{{- if .Values.feature.migrationHooks }}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation
helm.sh/hook-weight: "10"
{{- end }}
{{- end }}
{{- define "account.annotations" -}}
{{- if .Values.feature.migrationHooks }}
helm.sh/hook: pre-install,pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation
helm.sh/hook-weight: "0"
{{- end }}
{{- end }}
