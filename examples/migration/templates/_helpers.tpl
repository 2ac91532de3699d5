{{/* The Secret of who migrates. One that the chart makes carries the mode in its name, as the job does. */}}
{{- define "migration.ddlSecret" -}}
{{- $own := printf "%s-ddl%s" (.Release.Name | trunc 58 | trimSuffix "-") (ternary "-hook" "" (eq (include "release-hooks.mode" .) "hook")) -}}
{{- .Values.database.migration.secret | default $own -}}
{{- end -}}

{{/* The Secret of who serves. */}}
{{- define "migration.runtimeSecret" -}}
{{- .Values.database.runtime.secret | default (printf "%s-runtime" .Release.Name) -}}
{{- end -}}

{{/* The pod template of the migration. */}}
{{- define "migration.template" -}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: migrate
    image: {{ .Values.image }}
    imagePullPolicy: IfNotPresent
    command: [sh, -c]
    args:
    - {{ printf "echo migrating to schema %v as %s; %s" .Values.schema .Values.database.migration.user .Values.migrate | quote }}
    env:
    - name: DATABASE_USER
      value: {{ .Values.database.migration.user }}
    - name: DATABASE_PASSWORD
      valueFrom: {secretKeyRef: {name: {{ include "migration.ddlSecret" . }}, key: password}}
{{- end -}}
