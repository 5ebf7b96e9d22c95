// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
)

// printProgress adds the bars: the release, the operators, the pools.
func (v *view) printProgress(r *statusReport) {
	t := &table{indent: 2}
	if p := r.Cluster.Progress; p != nil {
		_, remark, _ := strings.Cut(r.Cluster.Message, "complete), ")
		t.rows = append(t.rows, []cell{{"release", noStyle}, {v.bar(p.Done, p.Total), noStyle}, {clean(remark), noStyle}})
	}
	if o := r.Operators; o != nil {
		remark := ""
		if len(o.Updating) > 0 {
			remark = "updating: " + strings.Join(o.Updating, ", ")
		}
		t.rows = append(t.rows, []cell{{"operators", noStyle}, {v.bar(o.Updated, o.Total), noStyle}, {clean(remark), noStyle}})
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		s := noStyle
		if p.LeftPaused || p.State == openshift.PoolDegraded.String() {
			s = red
		}
		t.rows = append(t.rows, []cell{{"pool " + p.Name, noStyle}, {v.bar(int(p.OnRelease), int(p.Machines)), noStyle}, {clean(p.remark(v)), s}})
	}
	if r.Job != nil && r.Job.ExtraMachines != nil {
		m := r.Job.ExtraMachines
		words := v.bar(int(m.Ready), int(m.Wanted)) + " ready"
		if m.Wanted == 0 {
			words = fmt.Sprintf("being removed, %d left", m.Ready)
		}
		t.rows = append(t.rows, []cell{{"extra machines", noStyle}, {words, noStyle}})
	}
	if len(t.rows) == 0 {
		return
	}
	v.heading("PROGRESS")
	v.printTable(t)
	if r.Operators == nil {
		return
	}
	for i := range r.Operators.Sick {
		sick := &r.Operators.Sick[i]
		v.wrap(2, fmt.Sprintf("Operator %s is not well, for %s: %s=%s (%s): %s", sick.Name, v.age(&sick.Since), sick.Type, cmp.Or(sick.Status, "missing"), sick.Reason, sick.Message))
	}
}

// printNodes adds the nodes in work: those that are held up first say what by.
func (v *view) printNodes(nodes []nodeReport, wide bool) {
	if len(nodes) == 0 {
		return
	}
	v.heading("NODES IN WORK")
	for i := range nodes {
		n := &nodes[i]
		if i == maxShown && !wide {
			v.printf("  and %d more: see the command nodes\n", len(nodes)-i)
			return
		}
		s := yellow
		if n.Phase == string(v1beta1.NodePhaseDegraded) || len(n.HeldBy) > 0 {
			s = red
		}
		v.printf("  %s: ", strings.TrimSuffix(n.Name+" of pool "+n.Pool, " of pool "))
		v.WriteString(v.paint(s, n.Phase))
		if n.Since != nil {
			v.printf(", for %s", v.age(n.Since))
		}
		v.WriteString("\n")
		if len(n.HeldBy) == 0 {
			v.wrap(4, n.Message)
		}
		for _, h := range n.HeldBy {
			v.wrap(4, fmt.Sprintf("The drain waits for pod %s: %s.", h.Pod, strings.TrimSuffix(h.Message, ".")))
		}
	}
}

var hookStyles = map[string]style{
	string(v1beta1.HookRunPending): yellow, string(v1beta1.HookRunActive): yellow, string(v1beta1.HookRunSucceeded): green, string(v1beta1.HookRunFailed): red,
}

// printHooks adds the runs of hooks that run or have failed; all of them if wide.
func (v *view) printHooks(hooks []hookReport, wide bool) {
	t := &table{indent: 2, wide: wide}
	for i := range hooks {
		h := &hooks[i]
		if h.Status == string(v1beta1.HookRunSucceeded) && !wide {
			continue
		}
		took := v.age(&h.StartTime)
		if h.CompletionTime != nil {
			took = span(h.CompletionTime.Sub(h.StartTime.Time))
		}
		t.addCells(cell{h.Hook, noStyle}, cell{strings.TrimSuffix(h.Event+" "+h.Key, " "), noStyle}, cell{h.Status, hookStyles[h.Status]}, cell{took, noStyle}, cell{h.Message, noStyle})
	}
	if len(t.rows) > 0 {
		v.heading("HOOKS")
		v.printTable(t)
	}
}

func (v *view) printNotifications(list []notificationReport, wide bool) {
	t := &table{indent: 2}
	for i := range list {
		n := &list[i]
		if n.Pending == 0 && n.Lost == 0 && n.LastError == "" && !wide {
			continue
		}
		words := fmt.Sprintf("%d delivered, %d pending", n.Delivered, n.Pending)
		if n.Lost > 0 {
			words += fmt.Sprintf(", %d lost", n.Lost)
		}
		t.add(n.Receiver, words, n.LastError)
	}
	if len(t.rows) > 0 {
		v.heading("NOTIFICATIONS")
		v.printTable(t)
	}
}

// recently is for how long a start for which no job was created is told of.
const recently = 30 * 24 * time.Hour

// printSchedules adds when each config upgrades next, and the suspension windows.
func (v *view) printSchedules(r *statusReport) {
	v.heading("SCHEDULES")
	if len(r.Configs)+len(r.Managed) == 0 {
		v.printf("  no UpgradeConfig is there: no job is created by itself\n")
	}
	for i := range r.Configs {
		c := &r.Configs[i]
		next := "no start is known"
		if c.NextStart != nil {
			next = fmt.Sprintf("next start %s, %s", v.moment(c.NextStart.Time), v.distance(c.NextStart.Time))
		}
		v.wrap(2, fmt.Sprintf("%s/%s: %s", c.Namespace, c.Name, next))
		for _, by := range c.Suspended {
			v.WriteString(v.paint(yellow, strings.TrimSuffix(v.wrapped(4, "suspended by "+by), "\n")) + "\n")
		}
		if c.Problem != "" {
			v.WriteString(v.paint(red, strings.TrimSuffix(v.wrapped(4, c.Problem), "\n")) + "\n")
		}
		if skipped := c.LastSkipped; skipped != nil && skipped.StartAfter.After(v.now.Add(-recently)) {
			v.wrap(4, fmt.Sprintf("no job was created for the start %s (%s): %s", v.moment(skipped.StartAfter.Time), skipped.Reason, skipped.Message))
		}
	}
	for i := range r.Managed {
		m := &r.Managed[i]
		v.wrap(2, fmt.Sprintf("%s/%s of the Managed Upgrade Operator's kind: to %s at %s, upgrader %s, %s",
			m.Namespace, m.Name, m.DesiredVersion, m.UpgradeAt, m.Upgrader, cmp.Or(m.Phase, "not taken up yet")))
	}
	for i := range r.Windows {
		w := &r.Windows[i]
		from := "from " + v.moment(w.Start.Time) + " "
		if w.Active {
			from = "now "
		}
		v.wrap(2, fmt.Sprintf("Suspension window %s/%s: %sto %s. %s", w.Namespace, w.Name, from, v.moment(w.End.Time), w.Reason))
	}
}
