{{/* The application. */}}
{{- define "migration.name" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .)) -}}
{{- end -}}

{{/* The bundled database: a Service, and a StatefulSet, whose pods have longer names. */}}
{{- define "migration.database" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .) "limit" 52 "form" "service" "end" "db") -}}
{{- end -}}

{{/* The Secret of who migrates. One that the chart makes carries the mode in its name, as the job does. */}}
{{- define "migration.ddlSecret" -}}
{{- $end := ternary "ddl-hook" "ddl" (eq (include "release-hooks.mode" .) "hook") -}}
{{- $own := include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .) "limit" 200 "end" $end) -}}
{{- .Values.database.migration.secret | default $own -}}
{{- end -}}

{{/* The Secret of who serves. */}}
{{- define "migration.runtimeSecret" -}}
{{- $own := include "release-hooks.named" (dict "text" (include "release-hooks.fullname" .) "limit" 200 "end" "runtime") -}}
{{- .Values.database.runtime.secret | default $own -}}
{{- end -}}

{{/* The pod template of the migration. */}}
{{- define "migration.template" -}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
  - name: migrate
    image: {{ .Values.image | quote }}
    imagePullPolicy: IfNotPresent
    command: [sh, -c]
    args:
    - {{ printf "echo migrating to schema %s as %s; %s" (include "release-hooks.text" .Values.schema) .Values.database.migration.user .Values.migrate | quote }}
    env:
    - name: DATABASE_USER
      value: {{ .Values.database.migration.user | quote }}
    - name: DATABASE_PASSWORD
      valueFrom: {secretKeyRef: {name: {{ include "migration.ddlSecret" . | quote }}, key: password}}
{{- end -}}
