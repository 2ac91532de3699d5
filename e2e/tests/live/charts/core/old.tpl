{{- /* A hook on upgrades only, which a deployer that always installs never sees. */ -}}
{{- define "job.annotations" -}}
{{- if and (not .Release.IsInstall) .Values.feature.migrationHooks }}
helm.sh/hook: pre-upgrade
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}
{{- end }}
{{- define "account.annotations" -}}
{{- end }}
