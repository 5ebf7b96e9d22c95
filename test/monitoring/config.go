// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

// Files that Prometheus reads, in its folder.
const (
	configFile = "prometheus.yml"
	rulesFile  = "rules.yml"
)

// exporterJob is the label job of what was scraped from an Exporter, and with a number
// the label instance: the default, an address, would differ from run to run.
const exporterJob = "exporter"

// Rule is an alerting rule.
type Rule struct {
	// Alert is the name of the alert.
	Alert string
	// Expr is the query: each sample it returns is an alert, with its labels.
	Expr string
	// For is how long it has to return the sample until the alert fires.
	For time.Duration
	// Labels are added to those of the sample.
	Labels map[string]string
	// Annotations tell people more.
	Annotations map[string]string
}

// object is one of a configuration file.
type object = map[string]any

// writeConfig writes the configuration, which changes by SetScrapes and SetRuleFiles only.
func (p *Prometheus) writeConfig() error {
	scrapes := []object{p.scrapeConfig()}
	for _, scrape := range p.scrapes {
		scrapes = append(scrapes, p.configOf(scrape))
	}
	return p.writeYAML(configFile, object{
		"global": object{
			"scrape_interval":     model.Duration(p.options.ScrapeInterval),
			"scrape_timeout":      model.Duration(p.options.ScrapeInterval),
			"evaluation_interval": model.Duration(p.options.EvaluationInterval),
		},
		"storage":        object{"tsdb": object{"retention": object{"time": "1h"}}},
		"rule_files":     append([]string{p.folder.Join(rulesFile)}, p.ruleFiles...),
		"scrape_configs": scrapes,
		"alerting": object{"alertmanagers": []object{{
			"static_configs": targets(p.options.Alertmanagers),
		}}},
	})
}

func (p *Prometheus) scrapeConfig() object {
	var exporters []object
	for i, exporter := range p.options.Exporters {
		exporters = append(exporters, object{
			"targets": []string{exporter.Address()},
			"labels":  object{"instance": fmt.Sprintf("%s-%d", exporterJob, i)},
		})
	}
	return object{
		"job_name":       exporterJob,
		"honor_labels":   true,
		"static_configs": exporters,
		"metric_relabel_configs": []object{
			dropFromAlerts("instance", exporterJob+"-[0-9]+"),
			dropFromAlerts("job", exporterJob),
		},
	}
}

// dropFromAlerts removes a label that scraping has added: an alert has the labels that
// it was fired with, and no others.
func dropFromAlerts(label, value string) object {
	return object{
		"source_labels": []string{"__name__", label},
		"regex":         alertMetric + ";" + value,
		"target_label":  label,
		"replacement":   "",
	}
}

func targets(alertmanagers []*Alertmanager) []object {
	var configs []object
	for _, alertmanager := range alertmanagers {
		configs = append(configs, object{"targets": []string{alertmanager.port.Address()}})
	}
	return configs
}

// writeRules gives each rule a group of its own. Prometheus lets a group alone when it
// finds it unchanged.
func (p *Prometheus) writeRules(rules []Rule) error {
	groups := []object{}
	seen := map[string]int{}
	for _, rule := range rules {
		seen[rule.Alert]++
		groups = append(groups, object{
			"name": fmt.Sprintf("%s-%d", rule.Alert, seen[rule.Alert]),
			"rules": []object{{
				"alert":       rule.Alert,
				"expr":        rule.Expr,
				"for":         model.Duration(rule.For),
				"labels":      rule.Labels,
				"annotations": rule.Annotations,
			}},
		})
	}
	return p.writeYAML(rulesFile, object{"groups": groups})
}

func (p *Prometheus) writeYAML(name string, content any) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := os.WriteFile(p.folder.Join(name), data, 0o644); err != nil {
		return fmt.Errorf("configure Prometheus: %w", err)
	}
	return nil
}
