// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
)

// logTailLines is how much of the operator's log is shown when it ends too early.
const logTailLines = 10

// demo is a demonstration under way.
type demo struct {
	*screen
	env      *environment.Environment
	operator *environment.Operator
	// simulator has the error with which the simulated cluster ended.
	simulator chan error
	observer  *observer
	trouble   trouble
	audience  audience
}

// errInterrupted says that somebody ended the demo before the upgrade had ended.
var errInterrupted = errors.New("interrupted")

// demonstrate shows an upgrade. It returns nil when that succeeded, and what went wrong otherwise; everything that
// it started has ended then.
func demonstrate(ctx context.Context, o options, s *screen) error {
	cluster, err := scenario(o.scenario, o.speed)
	if err != nil {
		return err
	}
	if _, err := os.Stat(o.manager); err != nil {
		return fmt.Errorf("find the operator's program: %w (make build makes it)", err)
	}
	d := &demo{screen: s, simulator: make(chan error, 1)}
	living, stop := context.WithCancel(ctx)
	defer d.stop()
	defer stop()

	if err = d.start(living, o.manager, cluster); err == nil {
		err = d.upgrade(living, o, cluster)
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case o.keep && d.operator != nil:
		return errors.Join(err, d.keep(ctx, err))
	}
	return err
}

// start starts everything that the upgrade needs.
func (d *demo) start(ctx context.Context, manager string, cluster sim.Scenario) error {
	d.say("demo", plain, "starting a Kubernetes control plane, Prometheus and Alertmanager")
	var err error
	if d.env, err = environment.Start(ctx, environment.Options{Progress: d.lines("demo", dim)}); err != nil {
		return err
	}
	if err := d.startCluster(ctx, cluster); err != nil {
		return err
	}
	if d.observer, err = observe(ctx, d.env.Config(), d.env.Client); err != nil {
		return err
	}
	return d.startOperator(ctx, manager)
}

// stop ends what start has started.
func (d *demo) stop() {
	if d.operator != nil {
		d.operator.Kill()
	}
	if d.audience.receiver != nil {
		d.audience.receiver.Close()
	}
	if d.env != nil {
		_ = d.env.Stop() // its folder may be in use by a kubectl of the user
	}
}

// startCluster installs the simulated cluster and sets it going.
func (d *demo) startCluster(ctx context.Context, s sim.Scenario) error {
	if err := sim.Install(ctx, d.env.Config(), s); err != nil {
		return err
	}
	go func() { d.simulator <- sim.Run(ctx, d.env.Config()) }()
	offered := make([]string, 0, len(s.Updates))
	for _, update := range s.Updates {
		offered = append(offered, update.Version)
	}
	machines := fmt.Sprintf("%d masters, %d workers", s.Masters.Size, s.Workers.Size)
	for _, p := range s.CustomPools {
		machines += fmt.Sprintf(", %d machines of pool %s", p.Size, p.Name)
	}
	d.say("demo", plain, fmt.Sprintf("simulating OpenShift %s with %s; offered: %s", s.Version, machines, strings.Join(offered, ", ")))
	return nil
}

func (d *demo) startOperator(ctx context.Context, manager string) error {
	var err error
	if d.operator, err = d.env.StartOperator(ctx, environment.OperatorOptions{Binary: manager}); err != nil {
		return fmt.Errorf("start %s: %w", manager, err)
	}
	d.say("demo", plain, fmt.Sprintf("the operator runs as process %d, with the token of its service account", d.operator.PID()))
	return nil
}

// upgrade applies the config and follows the upgrade to its end. It shows the job in any case.
func (d *demo) upgrade(ctx context.Context, o options, cluster sim.Scenario) error {
	if err := d.cause(ctx); err != nil {
		return err
	}
	if err := d.invite(ctx); err != nil {
		return err
	}
	if err := d.fillNight(ctx, cluster); err != nil {
		return err
	}
	a, err := appoint(time.Now(), delayAt(o.speed))
	if err != nil {
		return err
	}
	a.config.Namespace = environment.Namespace
	if err := d.env.Client.Create(ctx, a.config); err != nil {
		return fmt.Errorf("create UpgradeConfig %s: %w", a.config.Name, err)
	}
	d.say("demo", plain, fmt.Sprintf("applied UpgradeConfig %s of %s, due at %s (%s); changed for that:\n%s",
		a.config.Name, samplePath, a.start.Format("15:04"), a.start.Location(), strings.Join(a.changes, "\n")))

	times := newTimes(a.start)
	last, err := d.follow(ctx, o.timeout, newReporter(d.say, a.start.Location()), times)
	if last.job == nil || ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = d.hearOut(ctx)
	}
	d.kubectl(ctx, "get", "jobs.batch")
	d.kubectl(ctx, "describe", "upgradejob", last.job.Name)
	for i := range last.drains {
		d.kubectl(ctx, "describe", "nodeforcedrain", last.drains[i].Name)
	}
	d.print("Summary\n" + times.summary(last.job) + d.usage())
	return err
}

// follow reports what happens until the job has ended and has given everything back, and returns the cluster as it
// was last seen.
func (d *demo) follow(ctx context.Context, timeout time.Duration, r *reporter, times *times) (sight, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	tick := time.NewTicker(time.Second / 2) // for progress that was held back
	defer tick.Stop()
	for {
		now := time.Now()
		s, err := d.observer.look(ctx)
		if err != nil {
			return s, err
		}
		r.report(s, now)
		times.take(s, now)
		d.mend(s, now)
		d.hear()
		switch {
		case s.job != nil && s.job.Status.Phase.Finished() && len(s.job.Finalizers) == 0:
			return s, failure(s.job)
		case unusable(s.config) != "":
			return s, errors.New(unusable(s.config))
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-deadline.C:
			return s, fmt.Errorf("the upgrade has not ended within %s: %s", timeout, pending(s))
		case <-d.operator.Done():
			if ctx.Err() != nil { // a ^C reaches the operator too
				return s, context.Cause(ctx)
			}
			return s, d.operatorEnded()
		case err := <-d.simulator:
			return s, fmt.Errorf("the simulated cluster ended: %w", err)
		case <-d.observer.changed:
		case <-tick.C:
		}
	}
}

// kubectl shows what administrators see.
func (d *demo) kubectl(ctx context.Context, args ...string) {
	args = append([]string{"--namespace", environment.Namespace}, args...)
	cmd := exec.CommandContext(ctx, d.env.Kubectl(), append([]string{"--kubeconfig", d.env.Kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	d.print("$ kubectl " + strings.Join(args, " ") + "\n" + string(out))
	if err != nil {
		d.say("demo", bad, "kubectl: "+err.Error())
	}
}

// usage says what the operator has used; nothing where that cannot be measured.
func (d *demo) usage() string {
	usage, err := d.operator.Usage()
	if err != nil {
		return ""
	}
	return summaryLine("operator's peak memory", fmt.Sprintf("%.1f MiB", float64(usage.PeakRSS)/(1<<20))) +
		summaryLine("operator's CPU time", fmt.Sprintf("%.2f s", usage.CPU.Seconds()))
}

// keep leaves everything running until ctx ends, or something ends by itself.
func (d *demo) keep(ctx context.Context, failure error) error {
	if failure != nil {
		d.say("demo", bad, "failed: "+failure.Error())
	}
	ended := d.operator.Done()
	select {
	case <-ended:
		ended = nil // that is the failure: the rest of the cluster is worth a look
	default:
	}
	d.print(fmt.Sprintf(`The cluster goes on until ^C. To look around:

  export KUBECONFIG=%s
  alias kubectl=%s
  kubectl get managedupgrade --all-namespaces
  kubectl get clusterversion,machineconfigpools,nodes
  kubectl get clusteroperators
  make build && bin/oc-managed_upgrade status
  kubectl get events -n %s
  kubectl edit configmap -n %s %s   # what the cluster does, and what goes wrong in it`,
		d.env.Kubeconfig(), d.env.Kubectl(), environment.Namespace, sim.Namespace, sim.ConfigMapName))
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		if ctx.Err() != nil { // a ^C reaches the operator too
			return nil
		}
		return d.operatorEnded()
	case err := <-d.simulator:
		return fmt.Errorf("the simulated cluster ended: %w", err)
	}
}

// operatorEnded says how the operator ended by itself.
func (d *demo) operatorEnded() error {
	how := "exit status 0"
	if err := d.operator.Stop(); err != nil { // it is gone: what is left of stopping it is its result
		how = err.Error()
	}
	return fmt.Errorf("the operator ended (%s); the end of its log:\n%s", how, tail(d.operator.Log(), logTailLines))
}

// failure returns why a job that ended did not succeed; nil if it did.
func failure(job *v1beta1.UpgradeJob) error {
	c := outcomeOf(job)
	switch {
	case c == nil:
		return fmt.Errorf("UpgradeJob %s ended without saying how", job.Name)
	case c.Type == v1beta1.ConditionSucceeded:
		return nil
	}
	return fmt.Errorf("UpgradeJob %s is %s (%s): %s", job.Name, c.Type, c.Reason, c.Message)
}

// tail returns the last n lines of a log.
func tail(log string, n int) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
