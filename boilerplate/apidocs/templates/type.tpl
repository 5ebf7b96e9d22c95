{{- define "type" -}}
{{- if markdownShouldRenderType . }}

## {{ .Name }}

{{ .Doc }}
{{ if .IsAlias }}
Written as {{ markdownRenderTypeLink .UnderlyingType }}.
{{ end }}
{{- range .Validation }}{{ if not (regexMatch "^(Required|Optional|Type):" .) }}
- `{{ . }}`
{{- end }}{{ end }}
{{- if .References }}
Part of{{ range .SortedReferences }} {{ markdownRenderTypeLink . }}{{ end }}.
{{ end }}
{{- if .EnumValues }}
| Value | Meaning |
| --- | --- |
{{- range .EnumValues }}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{- end }}
{{ end }}
{{- if .Members }}
| Field | Type | Meaning | Default | Rules |
| --- | --- | --- | --- | --- |
{{- if .GVK }}
| `apiVersion` | string | `{{ .GVK.Group }}/{{ .GVK.Version }}` | | |
| `kind` | string | `{{ .GVK.Kind }}` | | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ template "type_members" . }} | {{ markdownRenderDefault .Default }} | {{ template "rules" .Validation }} |
{{- end }}
{{ end }}
{{- end }}
{{- end -}}

{{- define "rules" -}}
{{- range . -}}
{{- if hasPrefix "Required:" . }}required<br>{{ else if not (regexMatch "^(Optional|Type|Schemaless):" .) }}{{ markdownRenderFieldDoc . }}<br>{{ end -}}
{{- end -}}
{{- end -}}
