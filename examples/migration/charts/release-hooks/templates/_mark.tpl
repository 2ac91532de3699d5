{{/*
The ConfigMap by which jobs notice a forced deploy: pass it as `--mark configmap:NAME`. It is part of the release and never
a hook, so `helm upgrade --force` replaces it and removes what jobs have put on it. Its identity differs with every revision
of Helm; under Argo CD, where the revision is always 1, with every change of the content.
Takes a dict: root, and content (a string that changes with the release; not secret), fullname, labels.
*/}}
{{- define "release-hooks.mark" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "release-hooks.markName" . | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "release-hooks.labels" . | nindent 4 }}
data:
  identity: {{ include "release-hooks.identity" . | quote }}
{{- end -}}

{{/* The identity of a deploy. Takes a dict: root, content. */}}
{{- define "release-hooks.identity" -}}
{{- $content := list .root.Chart.Name .root.Chart.Version .root.Chart.AppVersion (.content | default "") | toJson -}}
{{- printf "%d.%s" (int .root.Release.Revision) ($content | sha256sum | trunc 16) -}}
{{- end -}}

{{/* The name of that ConfigMap. Takes a dict: root, and fullname. */}}
{{- define "release-hooks.markName" -}}
{{- include "release-hooks.named" (dict "text" (include "release-hooks.start" .) "limit" 200 "end" "mark") -}}
{{- end -}}
