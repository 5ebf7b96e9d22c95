// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// describeReport is what `describe` tells. It is the output of -o json and yaml: its field names stay.
type describeReport struct {
	jobReport `json:",inline"`

	// Events are what happened to the job, by time.
	Events []eventReport `json:"events"`
	// PoolStates are how far the machine config pools had come when the job looked last.
	PoolStates []v1beta1.MachineConfigPoolStatus `json:"pools,omitempty"`
	// AllConditions of the job, as they stand there.
	AllConditions []conditionReport `json:"allConditions,omitempty"`
}

// eventReport is something that happened.
type eventReport struct {
	Time metav1.Time `json:"time"`
	// Kind is job, step, hook, stage, notice, resume or silence.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// describeCommand tells what became of a job.
func (t *tool) describeCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "describe JOB",
		Short: "Tell the story of a job: steps, hooks, pools, notifications, resumes",
		Long: `Tell the story of an UpgradeJob: when each step began and ended, how often it was tried and what it waited for, the runs
of hooks, the machine config pools, notifications, resumes, silences and conditions.

What it waited for in between is known as far as its notifications tell, of which the newest are kept.`,
		Example:           t.examples("describe weekly-1764021600-abc1234", "What happened last night?"),
		Args:              exactly("the name of an UpgradeJob"),
		ValidArgsFunction: t.completeJobs,
	}
	o := addOutput(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect()
		if err != nil {
			return err
		}
		s, job, err := t.readStatus(cmd.Context(), c, openshift.NewCluster(c, c), args[0])
		if err != nil {
			return err
		}
		r := describeOf(s, job)
		if o.machine() {
			return t.printMachine(o, r)
		}
		v := t.newView(s.Now)
		v.printDescription(&r)
		return t.show(v)
	}
	return command
}

// describeOf tells the story of a job.
func describeOf(s *snapshot, job *v1beta1.UpgradeJob) describeReport {
	r := describeReport{jobReport: jobOf(s, job), PoolStates: job.Status.Pools, Events: storyOf(job)}
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		r.AllConditions = append(r.AllConditions, conditionReport{c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime})
	}
	return r
}

func (v *view) printDescription(r *describeReport) {
	v.printJob(&r.jobReport)
	if r.Config != "" {
		v.printf("Config    %s/%s\n", r.Namespace, r.Config)
	}
	v.printf("Window    %s to %s\n", v.moment(r.StartAfter.Time), v.moment(r.StartBefore.Time))
	v.printBlockers(&r.jobReport, true)
	v.printDeadlines(r.Deadlines)
	v.printStepTimes(r)
	v.printHooks(r.Hooks, true)
	v.printPoolStates(r.PoolStates)
	v.printNotifications(r.Notifications, true)
	for i := range r.Silences {
		if i == 0 {
			v.heading("SILENCES")
		}
		s := &r.Silences[i]
		v.wrap(2, fmt.Sprintf("%s: %s to %s, %d held. %s", s.Name, v.moment(s.StartTime.Time), v.moment(s.Until.Time), s.Silences, s.Warning))
	}
	for i := range r.Resumes {
		if i == 0 {
			v.heading("RESUMES")
		}
		v.printf("  %s  took %s back, request %q\n", v.moment(r.Resumes[i].Time.Time), r.Resumes[i].Reopened, clean(r.Resumes[i].Request))
	}
	v.heading("EVENTS")
	for i := range r.Events {
		e := &r.Events[i]
		lead := fmt.Sprintf("  %s  %-7s  ", e.Time.In(v.now.Location()).Format("2006-01-02 15:04:05 MST"), e.Kind)
		v.WriteString(lead + strings.TrimLeft(v.wrapped(len(lead), e.Text), " "))
	}
	v.heading("CONDITIONS")
	t := &table{indent: 2, header: []string{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, wide: true}
	for i := range r.AllConditions {
		c := &r.AllConditions[i]
		t.add(c.Type, c.Status, c.Reason, v.moment(c.Since.Time), c.Message)
	}
	v.printTable(t)
}

func (v *view) printStepTimes(r *describeReport) {
	if len(r.Steps) == 0 {
		return
	}
	v.heading("STEPS")
	t := &table{indent: 2, header: []string{"", "STEP", "START", "END", "TOOK", "TRIES", "REASON"}}
	for i := range r.Steps {
		s := &r.Steps[i]
		tries := ""
		if s.Attempts > 0 {
			tries = fmt.Sprint(s.Attempts)
		}
		t.addCells(marks[s.State], cell{s.Name, noStyle}, cell{v.optionalMoment(s.StartTime), noStyle}, cell{v.optionalMoment(s.CompletionTime), noStyle},
			cell{seconds(s.DurationSeconds), noStyle}, cell{tries, noStyle}, cell{s.Reason, noStyle})
	}
	v.printTable(t)
}

func (v *view) printPoolStates(states []v1beta1.MachineConfigPoolStatus) {
	if len(states) == 0 {
		return
	}
	v.heading("MACHINE CONFIG POOLS")
	t := &table{indent: 2}
	for i := range states {
		p := &states[i]
		remark := string(p.State)
		if p.UnpauseAfter != nil {
			remark += ", released at " + v.moment(p.UnpauseAfter.Time) + " or later"
		}
		if p.Paused {
			remark += ", paused by " + cmp.Or(p.PausedBy, "somebody else")
		}
		t.add(p.Name, v.bar(int(onRelease(p)), int(p.Machines)), strings.TrimSuffix(remark+". "+p.Message, ". "))
	}
	v.printTable(t)
}

// onRelease counts the machines of a pool that ran the release when the job looked last. The record tells how many had the pool's configuration, but not of which
// release that was. A pool that lacks nothing with it, and still is paused or degraded on its way to the release, had the one of the old release.
func onRelease(p *v1beta1.MachineConfigPoolStatus) int32 {
	lacksNothing := p.CurrentConfig == p.TargetConfig && p.Updated == p.Machines && p.Unavailable == 0 && p.Degraded == 0
	onItsWay := p.State == v1beta1.PoolStatePaused || p.State == v1beta1.PoolStateDegraded
	if p.State == v1beta1.PoolStateNotRendered || onItsWay && lacksNothing {
		return 0
	}
	return p.Updated
}
