{{- define "gvDetails" -}}
{{- $group := . -}}
{{ range .SortedKinds }}
{{- template "type" ($group.TypeForKind .) }}
{{- end }}
{{- range .SortedTypes }}
{{- if not .GVK }}{{ template "type" . }}{{ end }}
{{- end }}
{{- end -}}
