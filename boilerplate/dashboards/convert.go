// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// object is one of JSON.
type object = map[string]any

const (
	// columns of Grafana's grid; the console has twelve.
	columns = 24
	// rowHeight and the heights of panels are in units of that grid, of 30 pixels each.
	rowHeight   = 1
	panelHeight = 8
	lowHeight   = 5
	// lowRow is the height, in the source, of a row of single values.
	lowRow = "150px"
)

// dataSource is chosen by whoever looks at the dashboard.
var dataSource = object{"type": "prometheus", "uid": "${datasource}"}

func convert(source board) (object, error) {
	panels, y := []object{}, 0
	for _, row := range source.Rows {
		// A row that is folded has its panels in it; one that is not has them behind it.
		header := object{"type": "row", "title": row.Title, "collapsed": row.Collapse, "panels": []object{},
			"id": 1000 + len(panels), "gridPos": object{"h": rowHeight, "w": columns, "x": 0, "y": y}}
		converted, bottom, err := convertPanels(row, y+rowHeight)
		if err != nil {
			return nil, err
		}
		panels = append(panels, header)
		if row.Collapse {
			header["panels"] = converted
		} else {
			panels = append(panels, converted...)
		}
		y = bottom
	}
	return object{
		"title": source.Title, "uid": source.UID, "tags": source.Tags, "timezone": source.Timezone, "refresh": source.Refresh, "time": source.Time,
		"schemaVersion": 39, "editable": source.Editable, "panels": panels,
		"templating": object{"list": []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}},
	}, nil
}

// convertPanels places the panels of a row from y on, and returns where the next row begins.
func convertPanels(row row, y int) (converted []object, bottom int, err error) {
	x, height := 0, panelHeight
	if row.Height == lowRow {
		height = lowHeight
	}
	for _, panel := range row.Panels {
		width := panel.Span * columns / 12
		if x+width > columns {
			x, y = 0, y+height
		}
		out, err := convertPanel(panel)
		if err != nil {
			return nil, 0, err
		}
		out["id"], out["title"], out["datasource"] = panel.ID, panel.Title, dataSource
		out["gridPos"] = object{"h": height, "w": width, "x": x, "y": y}
		converted = append(converted, out)
		x += width
	}
	return converted, y + height, nil
}

func convertPanel(p panel) (object, error) {
	switch p.Type {
	case "graph":
		return convertGraph(p), nil
	case "singlestat":
		return convertSingle(p), nil
	case "table":
		return convertTable(p), nil
	}
	return nil, fmt.Errorf("panel %q is of type %q, which is not known here", p.Title, p.Type)
}

func convertGraph(p panel) object {
	stacking := "none"
	if p.Stack {
		stacking = "normal"
	}
	return object{
		"type":    "timeseries",
		"targets": targets(p, object{"range": true}),
		"fieldConfig": object{"overrides": []object{}, "defaults": object{
			"unit": p.YAxes[0].Format, "min": 0,
			"custom": object{"fillOpacity": 10, "lineInterpolation": "stepAfter", "showPoints": "never", "stacking": object{"mode": stacking}},
		}},
		"options": object{"legend": object{"showLegend": p.Legend.Show, "displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi"}},
	}
}

func convertSingle(p panel) object {
	mappings, texts := []object{}, object{}
	for _, m := range p.ValueMaps {
		if m.Value == "null" {
			mappings = append(mappings, object{"type": "special", "options": object{"match": "null+nan", "result": object{"text": m.Text}}})
			continue
		}
		texts[m.Value] = object{"text": m.Text}
	}
	if len(texts) > 0 {
		mappings = append(mappings, object{"type": "value", "options": texts})
	}
	defaults := object{"unit": p.Format, "decimals": p.Decimals, "mappings": mappings}
	if steps := thresholds(p); len(steps) > 0 {
		defaults["color"], defaults["thresholds"] = object{"mode": "thresholds"}, object{"mode": "absolute", "steps": steps}
	}
	return object{
		"type":        "stat",
		"targets":     targets(p, object{"instant": true}),
		"fieldConfig": object{"overrides": []object{}, "defaults": defaults},
		"options":     object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value", "graphMode": "none"},
	}
}

// thresholds has the first one begin below everything, as Grafana wants it.
func thresholds(p panel) []object {
	var steps []object
	for i, t := range p.Options.FieldOptions.Thresholds {
		step := object{"color": t.Color, "value": t.Value}
		if i == 0 {
			step["value"] = nil
		}
		steps = append(steps, step)
	}
	return steps
}

// convertTable merges the queries into one table, as the console does by the first label, and names its columns.
func convertTable(p panel) object {
	hidden, names, places, overrides := object{}, object{}, object{}, []object{}
	for i, s := range p.Styles {
		fields := []string{s.Pattern}
		if s.Pattern == "Value #A" {
			fields = append(fields, "Value") // its name where there is one query only
		}
		for _, field := range fields {
			if s.Type == "hidden" {
				hidden[field] = true
				continue
			}
			names[field], places[field] = s.Alias, i
		}
		if s.Type == "number" {
			overrides = append(overrides, object{"matcher": object{"id": "byName", "options": s.Alias}, "properties": []object{
				{"id": "unit", "value": s.Unit}, {"id": "decimals", "value": s.Decimals},
			}})
		}
	}
	return object{
		"type":        "table",
		"targets":     targets(p, object{"instant": true, "format": "table"}),
		"fieldConfig": object{"defaults": object{}, "overrides": overrides},
		"options":     object{"showHeader": true},
		"transformations": []object{
			{"id": "merge", "options": object{}},
			{"id": "organize", "options": object{"excludeByName": hidden, "renameByName": names, "indexByName": places}},
		},
	}
}

// targets are the queries of a panel, each with the fields of its kind.
func targets(p panel, kind object) []object {
	var out []object
	for _, t := range p.Targets {
		converted := object{"refId": t.RefID, "expr": t.Expr, "datasource": dataSource}
		if t.LegendFormat != "" {
			converted["legendFormat"] = t.LegendFormat
		}
		for key, value := range kind {
			converted[key] = value
		}
		out = append(out, converted)
	}
	return out
}
