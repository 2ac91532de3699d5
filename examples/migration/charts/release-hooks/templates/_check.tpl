{{/*
Checks of values. `default` takes 0, false and "" for unset, and `int` makes 0 of what is no number: neither is used on
numbers here. These fail with the name of the value.
*/}}

{{/*
A whole number, as text. Takes a dict: value, called (how an error names it), minimum, maximum. A number may be a string.
*/}}
{{- define "release-hooks.integer" -}}
{{- $text := include "release-hooks.text" .value -}}
{{- $known := or (kindIs "int" .value) (kindIs "int64" .value) (kindIs "float64" .value) (kindIs "string" .value) -}}
{{- if not (and $known (regexMatch "^(0|-?[1-9][0-9]{0,9})$" $text)) -}}
{{- fail (printf "%s is %s: it is a whole number without a unit" .called (toJson .value)) -}}
{{- end -}}
{{- if or (lt (int64 $text) (int64 .minimum)) (gt (int64 $text) (int64 .maximum)) -}}
{{- fail (printf "%s is %s: it is between %d and %d" .called $text (int64 .minimum) (int64 .maximum)) -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* A text or a number as text: a large number without an exponent. Takes the value. */}}
{{- define "release-hooks.text" -}}
{{- if kindIs "float64" . -}}
{{- ternary (printf "%.0f" .) (toString .) (eq . (floor .)) -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* A number of a setting. Takes a dict: settings, key, minimum. */}}
{{- define "release-hooks.checkNumber" -}}
{{- $number := include "release-hooks.integer" (dict "value" (index .settings .key) "called" (printf "releaseHooks.%s" .key) "minimum" .minimum "maximum" 2147483647) -}}
{{- $_ := set .settings .key (int64 $number) -}}
{{- end -}}

{{/*
A number that a job has of its own; empty if it has none. Takes a dict: job (its arguments), key, minimum.
*/}}
{{- define "release-hooks.ownNumber" -}}
{{- $value := get .job .key -}}
{{- if not (or (kindIs "invalid" $value) (not (hasKey .job .key))) -}}
{{- include "release-hooks.integer" (dict "value" $value "called" (printf "%s of job %s" .key (.job.name | default "without a name")) "minimum" .minimum "maximum" 2147483647) -}}
{{- end -}}
{{- end -}}

{{/*
A word of a job, of those that are known. Takes a dict: job (its arguments), key, words (the first is the default).
*/}}
{{- define "release-hooks.ownWord" -}}
{{- $word := get .job .key | default (first .words) -}}
{{- if not (has $word .words) -}}
{{- fail (printf "%s of job %s is %s: it is one of %s" .key (.job.name | default "without a name") (toJson $word) (join ", " .words)) -}}
{{- end -}}
{{- $word -}}
{{- end -}}

{{/* The phase of a job: pre or post. Takes what release-hooks.job takes, or the root context. */}}
{{- define "release-hooks.phase" -}}
{{- include "release-hooks.ownWord" (dict "job" . "key" "phase" "words" (list "pre" "post")) -}}
{{- end -}}

{{/* When a job runs. Takes what release-hooks.job takes. */}}
{{- define "release-hooks.run" -}}
{{- include "release-hooks.ownWord" (dict "job" . "key" "run" "words" (list "OnChange" "OnChangeOrExpired" "Always")) -}}
{{- end -}}

{{/* The weight of a hook: 10 unless it has one. Takes what release-hooks.job takes, or the root context. */}}
{{- define "release-hooks.weight" -}}
{{- $own := include "release-hooks.ownNumber" (dict "job" . "key" "weight" "minimum" -2147483648) -}}
{{- ternary "10" $own (eq $own "") -}}
{{- end -}}

{{/*
The account of a job as YAML: its own, or the chart's. Takes a dict: root, name, and serviceAccount.
*/}}
{{- define "release-hooks.account" -}}
{{- $settings := include "release-hooks.settings" .root | fromYaml -}}
{{- $account := .serviceAccount | default $settings.serviceAccount -}}
{{- $create := get $account "create" -}}
{{- if not (or (kindIs "bool" $create) (kindIs "invalid" $create) (not (hasKey $account "create"))) -}}
{{- fail (printf "serviceAccount.create of job %s is %s: it is true or false" (.name | default "without a name") (toJson $create)) -}}
{{- end -}}
{{- toYaml $account -}}
{{- end -}}
