{{- define "gvList" -}}
<!-- Generated from the types in api/: change it there, and run "make generate". -->

# API reference

Every field of every kind, in the words of `oc explain`. What the fields are for is told in [concepts](concepts.md); a field that has no default and is
not marked as required may be left out. Durations are Go durations, like `90m` or `1h30m`.

The fields of the Managed Upgrade Operator's own object are in [muo.md](muo.md).
{{ range . }}
{{- $group := . }}
Kinds of `{{ .GroupVersionString }}`:{{ range .SortedKinds }} {{ $group.TypeForKind . | markdownRenderTypeLink }}{{ end }}.
{{- end }}
{{ range . }}
{{ template "gvDetails" . }}
{{- end }}
{{- end -}}
