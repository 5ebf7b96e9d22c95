// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// releaseReasons are the reasons that ReleaseAccepted=False may have.
var releaseReasons = []string{reasonRetrievePayload, "LoadPayload", reasonVerifyPayloadVersion, reasonPreconditionChecks}

// Validate returns all mistakes in the scenario, each with the path of its field.
func (s *Scenario) Validate() error {
	v := validator{}
	v.version("version", s.Version)
	if len(s.Channels) == 0 {
		v.add("channels", "must list at least one channel, like stable-4.18")
	}
	v.pool("masters", s.Masters)
	if s.Masters.Size < 1 {
		v.add("masters.size", "must be at least 1, is %d", s.Masters.Size)
	}
	v.pool("workers", s.Workers)
	v.customPools(s.CustomPools)
	v.machineAPI(s)
	v.fileIntegrity(s.FileIntegrity)
	v.graph(s)
	v.updates(s.Updates)
	if s.UpdatesUnknown != nil && s.UpdatesUnknown.Reason == "" {
		v.add("updatesUnknown.reason", "must be set, like RemoteFailed")
	}
	v.timings(s.Timings)
	if s.Noise.ProgressMessages < 0 {
		v.add("noise.progressMessages", "must not be negative, is %d", s.Noise.ProgressMessages)
	}
	v.duration("noise.failingFlap", s.Noise.FailingFlap)
	v.faults(s)
	if len(v) == 0 {
		return nil
	}
	return fmt.Errorf("invalid scenario: %w", errors.Join(v...))
}

// validator collects the mistakes of a scenario.
type validator []error

func (v *validator) add(path, format string, args ...any) {
	*v = append(*v, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (v *validator) version(path, version string) {
	if _, err := semver.Parse(version); err != nil {
		v.add(path, "%q is not a version like 4.18.1", version)
	}
}

func (v *validator) duration(path string, d Duration) {
	if d < 0 {
		v.add(path, "must not be negative, is %s", d)
	}
}

func (v *validator) pool(path string, p Pool) {
	if p.Size < 0 {
		v.add(path+".size", "must not be negative, is %d", p.Size)
	}
	v.duration(path+".renderDelay", p.RenderDelay)
	if p.MaxUnavailable == nil {
		return
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(p.MaxUnavailable, 100, false); err != nil || n < 0 {
		v.add(path+".maxUnavailable", "%q is neither a number nor a percentage like 25%%", p.MaxUnavailable.String())
	}
}

func (v *validator) customPools(pools []CustomPool) {
	seen := []string{masterPool, workerPool}
	for i, p := range pools {
		path := fmt.Sprintf("customPools[%d]", i)
		if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
			v.add(path+".name", "%q is not a name: %s", p.Name, problems[0])
		}
		if slices.Contains(seen, p.Name) {
			v.add(path+".name", "%q exists already", p.Name)
		}
		seen = append(seen, p.Name)
		v.labels(path+".labels", p.Labels)
		v.pool(path, p.Pool)
	}
}

func (v *validator) labels(path string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(labels[key])...) {
			v.add(path, "%q: %q is not a label: %s", key, labels[key], problem)
		}
	}
}

func (v *validator) updates(updates []OfferedUpdate) {
	var seen []string
	for i, u := range updates {
		path := fmt.Sprintf("updates[%d]", i)
		v.version(path+".version", u.Version)
		if slices.Contains(seen, u.Version) {
			v.add(path+".version", "%q is listed twice", u.Version)
		}
		seen = append(seen, u.Version)
		if slices.Contains(u.Channels, "") {
			v.add(path+".channels", "must not list an empty channel")
		}
		for j, from := range u.From {
			v.version(fmt.Sprintf("%s.from[%d]", path, j), from)
		}
		for j, risk := range u.Risks {
			riskPath := fmt.Sprintf("%s.risks[%d]", path, j)
			if risk.Name == "" {
				v.add(riskPath+".name", "must be set")
			}
			if !slices.Contains([]Applies{AppliesYes, AppliesNo, AppliesUnknown}, risk.Applies) {
				v.add(riskPath+".applies", "%q is none of Yes, No, Unknown", risk.Applies)
			}
		}
	}
}

func (v *validator) timings(t Timings) {
	for _, timing := range []struct {
		path string
		d    Duration
	}{
		{"accept", t.Accept}, {"operator", t.Operator}, {"graph", t.Graph}, {"render", t.Render},
		{"drain", t.Drain}, {"apply", t.Apply}, {"reboot", t.Reboot},
		{"drainRetry", t.DrainRetry}, {"drainFails", t.DrainFails},
		{"upgradeable", t.Upgradeable}, {"reconcile", t.Reconcile},
		{"degradedFails", t.DegradedFails}, {"slowUnknown", t.SlowUnknown},
	} {
		v.duration("timings."+timing.path, timing.d)
	}
	for _, name := range sortedKeys(t.Operators) {
		v.operator("timings.operators", name)
		v.duration("timings.operators."+name, t.Operators[name])
	}
}

func (v *validator) operator(path, name string) {
	if _, known := levelOf(name); !known {
		v.add(path, "there is no cluster operator %q", name)
	}
}

func (v *validator) faults(s *Scenario) {
	for i, f := range s.Operators {
		v.operator(fmt.Sprintf("operators[%d].name", i), f.Name)
	}
	for i, f := range s.Releases {
		path := fmt.Sprintf("releases[%d]", i)
		v.version(path+".version", f.Version)
		if !f.Stuck && !slices.Contains(releaseReasons, f.Reason) {
			v.add(path+".reason", "%q is none of %v", f.Reason, releaseReasons)
		}
	}
	for i, f := range s.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if f.Name == "" {
			v.add(path+".name", "must be set")
		}
		if f.Slow < 0 {
			v.add(path+".slow", "must not be negative, is %v", f.Slow)
		}
		v.duration(path+".abandonsDrain", f.AbandonsDrain)
	}
}
