// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

// board is a dashboard as the OpenShift console reads it.
type board struct {
	Title         string            `json:"title"`
	UID           string            `json:"uid"`
	Tags          []string          `json:"tags"`
	Timezone      string            `json:"timezone"`
	Refresh       string            `json:"refresh"`
	Time          map[string]string `json:"time"`
	SchemaVersion int               `json:"schemaVersion"`
	Editable      bool              `json:"editable"`
	Templating    struct {
		List []struct{} `json:"list"`
	} `json:"templating"`
	Rows []row `json:"rows"`
}

type row struct {
	Title     string  `json:"title"`
	ShowTitle bool    `json:"showTitle"`
	Collapse  bool    `json:"collapse"`
	Height    string  `json:"height"`
	Panels    []panel `json:"panels"`
}

type panel struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	Type    string   `json:"type"`
	Span    int      `json:"span"` // of twelve columns
	Targets []target `json:"targets"`

	// Of graphs.
	Stack  bool `json:"stack"`
	Legend struct {
		Show bool `json:"show"`
	} `json:"legend"`
	YAxes []struct {
		Format string `json:"format"`
	} `json:"yaxes"`

	// Of single values.
	Format    string     `json:"format"`
	Decimals  int        `json:"decimals"`
	ValueMaps []valueMap `json:"valueMaps"`
	Options   struct {
		FieldOptions struct {
			Thresholds []threshold `json:"thresholds"`
		} `json:"fieldOptions"`
	} `json:"options"`

	// Of tables.
	Transform string  `json:"transform"`
	Styles    []style `json:"styles"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Format       string `json:"format"`
	Instant      bool   `json:"instant"`
}

// valueMap shows a text instead of a value; "null" stands for no value.
type valueMap struct {
	Op    string `json:"op"`
	Value string `json:"value"`
	Text  string `json:"text"`
}

// threshold colours values from Value on.
type threshold struct {
	Color string  `json:"color"`
	Value float64 `json:"value"`
}

// style is a column of a table: of the label Pattern, or, for "Value #A", of the values of query A.
type style struct {
	Pattern  string `json:"pattern"`
	Alias    string `json:"alias"`
	Type     string `json:"type"` // string, number, hidden
	Decimals int    `json:"decimals"`
	Unit     string `json:"unit"`
}
