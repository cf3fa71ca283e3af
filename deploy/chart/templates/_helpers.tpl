{{/* Names: of everything of a release, and of its app.yaml. */}}
{{- define "nightjar.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "nightjar.configMap" -}}
{{- .Values.existingConfigMap | default (include "nightjar.name" .) -}}
{{- end }}

{{- define "nightjar.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Another name, because Services select servers by the two labels above, which cannot change. */}}
{{- define "nightjar.workerSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nightjar.versionLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "nightjar.labels" -}}
{{ include "nightjar.selector" . }}
{{ include "nightjar.versionLabels" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "nightjar.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What the schema cannot say in words that name the fix. */}}
{{- define "nightjar.validate" -}}
{{- if and (eq .Values.database "sqlite") (gt (int .Values.replicas) 1) -}}
{{- fail (printf "replicas is %d, and database is sqlite, which serves one process only. Set replicas: 1, or set database: postgresql and add DATABASE_URL=postgresql://… to the Secret." (int .Values.replicas)) -}}
{{- end -}}
{{- if and (eq .Values.database "sqlite") (gt (int .Values.worker.replicas) 0) -}}
{{- fail "worker.replicas is set, and database is sqlite, which serves one process only. Set worker.replicas: 0, or set database: postgresql and add DATABASE_URL=postgresql://… to the Secret." -}}
{{- end -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is not set. Build the image with `docker build`, push it to your registry, and set its name." -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- fail "existingSecret is not set. Create a Secret with GITHUB_APP_ID, GITHUB_PRIVATE_KEY, GITHUB_WEBHOOK_SECRET, and with PostgreSQL DATABASE_URL, and set its name." -}}
{{- end -}}
{{- if and .Values.config .Values.existingConfigMap -}}
{{- fail "config and existingConfigMap are both set. Keep one of them." -}}
{{- end -}}
{{- if not (or .Values.config .Values.existingConfigMap) -}}
{{- fail "There is no app.yaml. Add --set-file config=app.yaml, or set existingConfigMap to the name of a ConfigMap with the key app.yaml." -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true, and ingress.host is not set. Set it to the host name of the webhook's URL." -}}
{{- end -}}
{{- end }}
