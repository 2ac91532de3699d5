{{/*
What init-cert may do, and no more: what `jobwright init-cert --print-rbac` prints. Takes a dict: root, account, and
annotations where it comes and goes with a hook.
*/}}
{{- define "agent.initCert.roles" -}}
{{- $root := .root }}
{{- $rules := list
  (dict "apiGroups" (list "") "resources" (list "secrets") "verbs" (list "create"))
  (dict "apiGroups" (list "") "resources" (list "secrets") "verbs" (list "get" "update") "resourceNames" (list (include "agent.secret" $root) (printf "%s-ca" (include "agent.secret" $root))))
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "create"))
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "get" "update") "resourceNames" (list (include "agent.name" (dict "root" $root "name" "init-cert"))))
}}
{{- if not .annotations }}
{{- $rules = concat $rules (list
  (dict "apiGroups" (list "apps") "resources" (list "deployments") "verbs" (list "get" "patch") "resourceNames" (list (include "agent.server" $root)))
  (dict "apiGroups" (list "apps") "resources" (list "replicasets") "verbs" (list "list"))
  (dict "apiGroups" (list "") "resources" (list "pods") "verbs" (list "list"))
  (dict "apiGroups" (list "") "resources" (list "services") "verbs" (list "get") "resourceNames" (list (include "agent.server" $root)))
  (dict "apiGroups" (list "discovery.k8s.io") "resources" (list "endpointslices") "verbs" (list "list"))
) }}
{{- end }}
{{- if not .annotations }}
{{- $rules = concat $rules (include "agent.markRules" $root | fromYamlArray) }}
{{- end }}
{{- $cluster := list (dict "apiGroups" (list "admissionregistration.k8s.io") "resources" (list "validatingwebhookconfigurations") "verbs" (list "get" "patch") "resourceNames" (list (include "agent.configuration" $root))) }}
{{- include "agent.roles" (merge (dict "rules" $rules "clusterRules" $cluster) .) }}
{{- end -}}

{{/*
What backfill may do: see what it captures, tell which cluster that is, and write down how far it has come. Takes a dict: root, account, kinds,
authSecret.
*/}}
{{- define "agent.backfill.roles" -}}
{{- $name := list .account }}
{{- $rules := list
  (dict "apiGroups" (list "") "resources" (list "configmaps") "verbs" (list "create"))
  (dict "apiGroups" (list "") "resources" (list "configmaps") "verbs" (list "get" "update") "resourceNames" $name)
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "create"))
  (dict "apiGroups" (list "coordination.k8s.io") "resources" (list "leases") "verbs" (list "get" "update") "resourceNames" $name)
}}
{{- $rules = concat $rules (include "agent.markRules" .root | fromYamlArray) }}
{{- with .authSecret }}
{{- $rules = append $rules (dict "apiGroups" (list "") "resources" (list "secrets") "verbs" (list "get") "resourceNames" (list .)) }}
{{- end }}
{{- $cluster := list (dict "apiGroups" (list "") "resources" (list "namespaces") "verbs" (list "get") "resourceNames" (list "kube-system")) }}
{{- range .kinds }}
{{- $parts := splitn "." 2 . }}
{{- $cluster = append $cluster (dict "apiGroups" (list ($parts._1 | default "")) "resources" (list $parts._0) "verbs" (list "list")) }}
{{- end }}
{{- include "agent.roles" (merge (dict "rules" $rules "clusterRules" $cluster) .) }}
{{- end -}}

{{/* What noticing a forced deploy needs, as a YAML list. Takes the root context. */}}
{{- define "agent.markRules" -}}
{{- if include "agent.noticesForce" . -}}
{{- list (dict "apiGroups" (list "") "resources" (list "configmaps") "verbs" (list "get" "patch") "resourceNames" (list (include "release-hooks.markName" (dict "root" .)))) | toYaml -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* A Role, a ClusterRole and who has them. Takes a dict: root, account, rules, clusterRules, annotations. */}}
{{- define "agent.roles" -}}
{{- $root := .root }}
{{- $wide := printf "%s-%s" $root.Release.Namespace .account }}
{{- $subjects := list (dict "kind" "ServiceAccount" "name" .account "namespace" $root.Release.Namespace) }}
{{- range list
  (dict "kind" "Role" "name" .account "rules" .rules)
  (dict "kind" "ClusterRole" "name" $wide "rules" .clusterRules)
  (dict "kind" "RoleBinding" "name" .account "of" "Role")
  (dict "kind" "ClusterRoleBinding" "name" $wide "of" "ClusterRole")
}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name | quote }}
  labels:
    {{- include "agent.labels" $root | nindent 4 }}
  {{- with $.annotations }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
{{- with .rules }}
rules:
{{ toYaml . }}
{{- end }}
{{- if .of }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ .of }}, name: {{ .name | quote }}}
subjects:
{{ toYaml $subjects }}
{{- end }}
{{- end }}
{{- end -}}
