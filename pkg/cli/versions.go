// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// States of a version.
const (
	// versionActive: the cluster runs it.
	versionActive = "active"
	// versionPartial: the cluster is on its way to it.
	versionPartial = "partial"
	// versionAvailable: the cluster may be upgraded to it.
	versionAvailable = "available"
	// versionUnavailable: a job is to upgrade to it, and the cluster does not offer it.
	versionUnavailable = "unavailable"
)

// Recommendations of a version.
const (
	recommended    = "recommended"
	conditional    = "conditional"
	notRecommended = "not recommended"
)

// versionsReport is what `versions` tells. It is the output of -o json and yaml: its field names stay.
type versionsReport struct {
	Channel string `json:"channel,omitempty"`
	// Versions, the highest first.
	Versions []versionReport `json:"versions"`
	// Problem says why it is not known which updates are available.
	Problem string `json:"problem,omitempty"`
}

// versionReport is a version that the cluster runs, or could.
type versionReport struct {
	Version string `json:"version"`
	Image   string `json:"image,omitempty"`
	// Target is set if the cluster is asked for it, or if a job that is not over is to upgrade to it.
	Target bool `json:"target"`
	// State is active, partial, available or unavailable.
	State string `json:"state"`
	// Recommendation is recommended, conditional (it is not known yet if a risk applies) or not recommended. Empty for one that is running.
	Recommendation string       `json:"recommendation,omitempty"`
	Message        string       `json:"message,omitempty"`
	Risks          []riskReport `json:"risks,omitempty"`
	// Highest is set on the one that a job would pin now.
	Highest bool   `json:"highest,omitempty"`
	URL     string `json:"url,omitempty"`
	// PinnedBy are the jobs that are to upgrade to it and are not over, as namespace/name.
	PinnedBy []string `json:"pinnedBy,omitempty"`
}

// riskReport is a risk of a conditional update.
type riskReport struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	URL     string `json:"url,omitempty"`
}

// versionsCommand lists the versions that the cluster runs, or could.
func (t *tool) versionsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "versions",
		Short: "List the versions that the cluster runs, and those that it could be upgraded to",
		Long: `List the versions that the cluster runs, is on its way to, and could be upgraded to.

Target is True for what the cluster is asked for, or an UpgradeJob that is not over has pinned. Of the recommended
versions a job pins the highest. Conditional ones, which have known risks, are never pinned by a schedule.`,
		Example: t.examples("versions", "Where could this cluster go?", "versions -o wide", "With what is said of each risk"),
		Args:    noArguments(),
	}
	o := addOutput(command, formatWide)
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		s, err := t.read(cmd.Context(), c)
		if err != nil {
			return err
		}
		r := versionsOf(s)
		if o.machine() {
			return t.printMachine(o, r)
		}
		v := t.newView(s.Now)
		v.printVersions(&r, o.format == formatWide)
		return t.show(v)
	}
	return command
}

// versionsOf lists versions.
func versionsOf(s *snapshot) versionsReport {
	cv := s.Version
	r := versionsReport{Channel: cv.Spec.Channel}
	if c := openshift.Condition(cv.Status.Conditions, configv1.RetrievedUpdates); c != nil && c.Status != configv1.ConditionTrue {
		r.Problem = strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	}
	highest, _ := openshift.HighestAvailable(cv)
	if running := openshift.RunningVersion(cv); running != "" {
		r.add(versionReport{Version: running, Image: imageOf(cv, running), State: versionActive})
	}
	if release, updating := openshift.Updating(cv); updating {
		r.add(versionReport{Version: release.Version, Image: release.Image, State: versionPartial})
	}
	for i := range cv.Status.AvailableUpdates {
		u := &cv.Status.AvailableUpdates[i]
		r.add(versionReport{
			Version: u.Version, Image: u.Image, State: versionAvailable, Recommendation: recommended, URL: string(u.URL), Highest: u.Version == highest.Version,
		})
	}
	for i := range cv.Status.ConditionalUpdates {
		r.add(conditionalVersion(&cv.Status.ConditionalUpdates[i]))
	}
	r.addTargets(s)
	slices.SortStableFunc(r.Versions, func(a, b versionReport) int { return compareVersions(b.Version, a.Version) })
	return r
}

// imageOf is the image by which the cluster came to the version, as far as its history tells.
func imageOf(cv *configv1.ClusterVersion, version string) string {
	for i := range cv.Status.History {
		if cv.Status.History[i].Version == version {
			return cv.Status.History[i].Image
		}
	}
	return ""
}

// add adds a version unless it is there.
func (r *versionsReport) add(version versionReport) *versionReport {
	for i := range r.Versions {
		known := &r.Versions[i]
		if (openshift.Release{Version: version.Version, Image: version.Image}).Matches(known.Version, known.Image) {
			known.Risks = append(known.Risks, version.Risks...)
			return known
		}
	}
	r.Versions = append(r.Versions, version)
	return &r.Versions[len(r.Versions)-1]
}

// addTargets marks what the cluster is asked for, and what jobs are to upgrade to.
func (r *versionsReport) addTargets(s *snapshot) {
	if u := s.Version.Spec.DesiredUpdate; u != nil && (u.Version != "" || u.Image != "") {
		r.add(versionReport{Version: u.Version, Image: u.Image, State: versionUnavailable, Message: "the cluster is asked for it, and does not offer it"}).Target = true
	}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if d := job.Spec.DesiredVersion; d != nil && !job.Status.Phase.Finished() {
			known := r.add(versionReport{Version: d.Version, Image: d.Image, State: versionUnavailable, Message: "a job is to upgrade to it, and the cluster does not offer it"})
			known.Target, known.PinnedBy = true, append(known.PinnedBy, job.LockKey())
		}
	}
}

func conditionalVersion(u *configv1.ConditionalUpdate) versionReport {
	r := versionReport{Version: u.Release.Version, Image: u.Release.Image, State: versionAvailable, Recommendation: conditional, URL: string(u.Release.URL)}
	if c := meta.FindStatusCondition(u.Conditions, "Recommended"); c != nil {
		r.Message = c.Message
		switch c.Status {
		case metav1.ConditionTrue:
			r.Recommendation = recommended
		case metav1.ConditionFalse:
			r.Recommendation = notRecommended
		}
	}
	for i := range u.Risks {
		r.Risks = append(r.Risks, riskReport{u.Risks[i].Name, u.Risks[i].Message, u.Risks[i].URL})
	}
	return r
}

// compareVersions compares by semantic version; what is none comes last.
func compareVersions(a, b string) int {
	left, errLeft := semver.Parse(a)
	right, errRight := semver.Parse(b)
	switch {
	case errLeft != nil && errRight != nil:
		return cmp.Compare(a, b)
	case errLeft != nil:
		return -1
	case errRight != nil:
		return 1
	}
	return left.Compare(right)
}

var versionStyles = map[string]style{versionActive: green, versionPartial: yellow, versionUnavailable: red}

func (v *view) printVersions(r *versionsReport, wide bool) {
	t := &table{header: []string{"VERSION", "TARGET", "STATE", "RECOMMENDATION", "PINNED BY", "REMARK"}, wide: wide}
	for i := range r.Versions {
		known := &r.Versions[i]
		isTarget := "False"
		if known.Target {
			isTarget = "True"
		}
		name := openshift.Release{Version: known.Version, Image: known.Image}.String()
		t.addCells(cell{name, noStyle}, cell{isTarget, noStyle}, cell{known.State, versionStyles[known.State]}, cell{known.Recommendation, noStyle},
			cell{strings.Join(known.PinnedBy, ", "), noStyle}, cell{known.remark(), noStyle})
	}
	v.printTable(t)
	if wide {
		v.printRisks(r)
	}
	if r.Problem != "" {
		v.WriteString("\n")
		v.wrap(0, "Which updates are available is not known: "+r.Problem)
	} else if !slices.ContainsFunc(r.Versions, func(known versionReport) bool {
		return known.State == versionAvailable || known.State == versionPartial
	}) {
		v.printf("\nNo update is available in channel %s.\n", cmp.Or(r.Channel, "none"))
	}
}

func (known *versionReport) remark() string {
	var names []string
	for _, risk := range known.Risks {
		names = append(names, risk.Name)
	}
	switch {
	case known.Highest:
		return "a job would pin it now"
	case len(names) > 0:
		return "risks: " + strings.Join(names, ", ")
	}
	return known.Message
}

func (v *view) printRisks(r *versionsReport) {
	for i := range r.Versions {
		known := &r.Versions[i]
		if len(known.Risks) == 0 {
			continue
		}
		v.heading("RISKS OF " + clean(known.Version))
		for _, risk := range known.Risks {
			v.wrap(2, risk.Name+": "+risk.Message)
			if risk.URL != "" {
				v.wrap(4, risk.URL)
			}
		}
	}
}
