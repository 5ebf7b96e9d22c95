// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/lifecycle"
)

// historyReport is what `history` tells. It is the output of -o json and yaml: its field names stay.
type historyReport struct {
	// Jobs that have ended, the newest first.
	Jobs []pastJob `json:"jobs"`
	// Updates of the cluster as ClusterVersion tells, the newest first.
	Updates []pastUpdate `json:"clusterHistory"`
}

// pastJob is a job that has ended.
type pastJob struct {
	jobSummary `json:",inline"`

	// LastRunTime is when the run began that it ended with: startTime, or its start after it was resumed last. Absent if it never started, or not since it
	// was resumed. So are the next two.
	LastRunTime *metav1.Time `json:"lastRunTime,omitempty"`
	// DurationSeconds is how long that run was.
	DurationSeconds *int64 `json:"durationSeconds,omitempty"`
	// WaitedSeconds is how long after startAfter, or after it was resumed, that run began.
	WaitedSeconds *int64 `json:"waitedSeconds,omitempty"`
}

// pastUpdate is an entry of the history of ClusterVersion.
type pastUpdate struct {
	Version        string       `json:"version"`
	State          string       `json:"state"`
	StartTime      metav1.Time  `json:"startTime"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Job that upgraded to it, as namespace/name; empty if none that is known did.
	Job string `json:"upgradeJob,omitempty"`
}

// historyCommand lists the jobs that have ended.
func (t *tool) historyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "history",
		Short: "List the upgrades that have ended, the newest first",
		Long: `List the UpgradeJobs that have ended, the newest first: outcome, reason, how long they waited for their start and how
long they ran; of one that was resumed, its last run. With -o wide also why, and the cluster's own history with the job
that each update came of.

How many jobs are kept is said by successfulJobsHistoryLimit and failedJobsHistoryLimit of their UpgradeConfig.`,
		Example: t.examples("history", "What happened in the last maintenance windows", "history -o wide", "And which update was whose"),
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
		r := historyOf(s)
		if o.machine() {
			return t.printMachine(o, r)
		}
		v := t.newView(s.Now)
		v.printHistory(&r, o.format == formatWide)
		return t.show(v)
	}
	return command
}

// historyOf lists what has ended.
func historyOf(s *snapshot) historyReport {
	r := historyReport{Jobs: []pastJob{}, Updates: []pastUpdate{}}
	for i := range s.Jobs {
		job := &s.Jobs[i]
		if !job.Status.Phase.Finished() {
			continue
		}
		past := pastJob{jobSummary: summaryOf(job)}
		if due, began, ran := lifecycle.LastRun(job); ran {
			past.LastRunTime = new(metav1.NewTime(began))
			past.DurationSeconds = new(int64(max(0, ended(job).Sub(began)).Seconds()))
			past.WaitedSeconds = new(int64(max(0, began.Sub(due)).Seconds()))
		}
		r.Jobs = append(r.Jobs, past)
	}
	slices.SortStableFunc(r.Jobs, func(a, b pastJob) int {
		return cmp.Compare(when(&b.jobSummary).Unix(), when(&a.jobSummary).Unix())
	})
	for i := range s.Version.Status.History {
		h := &s.Version.Status.History[i]
		r.Updates = append(r.Updates, pastUpdate{h.Version, string(h.State), h.StartedTime, h.CompletionTime, whose(s, h)})
	}
	return r
}

// when is when a job ended; its startAfter where that is not known.
func when(j *jobSummary) metav1.Time {
	if j.CompletionTime != nil {
		return *j.CompletionTime
	}
	return j.StartAfter
}

// whose is the job that the update came of, as namespace/name: one to that version that had commenced by then and was not over. Empty if there is none.
func whose(s *snapshot, h *configv1.UpdateHistory) string {
	for i := range s.Jobs {
		job := &s.Jobs[i]
		d, commenced := job.Spec.DesiredVersion, job.Status.CommenceTime
		switch {
		case d == nil || commenced == nil || d.Version != h.Version && (d.Image == "" || d.Image != h.Image):
		case h.StartedTime.Add(historyGranularity).Before(commenced.Time):
		case job.Status.CompletionTime != nil && h.StartedTime.After(job.Status.CompletionTime.Time):
		default:
			return job.LockKey()
		}
	}
	return ""
}

func (v *view) printHistory(r *historyReport, wide bool) {
	if len(r.Jobs) == 0 {
		v.printf("No UpgradeJob has ended yet.\n")
	} else {
		t := &table{header: []string{"JOB", "CONFIG", "FROM", "TO", "OUTCOME", "REASON", "START", "WAITED", "TOOK"}, wide: wide}
		if wide {
			t.header = append(t.header, "MESSAGE")
		}
		for i := range r.Jobs {
			j := &r.Jobs[i]
			start := cmp.Or(j.LastRunTime, j.StartTime, &j.StartAfter)
			cells := []cell{
				{j.Namespace + "/" + j.Name, noStyle}, {j.Config, noStyle}, {j.FromVersion, noStyle}, {j.DesiredVersion, noStyle},
				{j.Phase, phaseStyles[j.Phase]}, {j.Reason, noStyle}, {v.moment(start.Time), noStyle}, {seconds(j.WaitedSeconds), noStyle}, {seconds(j.DurationSeconds), noStyle},
			}
			if wide {
				cells = append(cells, cell{j.Message, noStyle})
			}
			t.addCells(cells...)
		}
		v.printTable(t)
	}
	if !wide {
		return
	}
	v.heading("HISTORY OF THE CLUSTER")
	t := &table{header: []string{"VERSION", "STATE", "START", "COMPLETION", "JOB"}, wide: true}
	for i := range r.Updates {
		u := &r.Updates[i]
		s := noStyle
		if u.State != string(configv1.CompletedUpdate) {
			s = yellow
		}
		t.addCells(cell{u.Version, noStyle}, cell{u.State, s}, cell{v.moment(u.StartTime.Time), noStyle}, cell{v.optionalMoment(u.CompletionTime), noStyle}, cell{u.Job, noStyle})
	}
	v.printTable(t)
}

// historyGranularity is by how much the times of two programs may disagree.
const historyGranularity = 2 * v1beta1.DefaultHealthCheckInterval
