// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/healthcheck"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/pkg/upgrader"
)

// checkOptions are the flags of `check`.
type checkOptions struct {
	job        string
	to         string
	post       bool
	monitoring monitoringOptions
}

// checkConfiguration is the check of findings about the config itself.
const checkConfiguration = "Configuration"

// checkReport is the answer of `check`.
type checkReport struct {
	// Of is the UpgradeConfig or UpgradeJob whose checks were made; empty for the defaults.
	Of string `json:"of,omitempty"`
	// Target is the version for which the cluster was judged; empty for none.
	Target string `json:"target,omitempty"`
	// Checks that looked at the cluster, in order.
	Checks []string `json:"checks"`
	// Skipped are those that did not, in order.
	Skipped []skippedCheck `json:"skipped,omitempty"`
	// Healthy is set if a check looked and none found anything.
	Healthy bool `json:"healthy"`
	// Findings are what is wrong with the cluster, or could not be found out.
	Findings []checkFinding `json:"findings"`
	// Notes say what was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// skippedCheck is a check that did not look at the cluster.
type skippedCheck struct {
	Check string `json:"check"`
	// Why is half a sentence, as "turned off".
	Why string `json:"why"`
}

// checkFinding is one thing that would hold an upgrade up.
type checkFinding struct {
	Check      string `json:"check"`
	Object     string `json:"object,omitempty"`
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	ClearsWhen string `json:"clearsWhen,omitempty"`
	// Young is set for what may be gone in a moment: it holds an upgrade up, but does not end one yet.
	Young bool `json:"young,omitempty"`
}

func (t *tool) checkCommand() *cobra.Command {
	var o checkOptions
	command := &cobra.Command{
		Use:   "check [CONFIG]",
		Short: "Make the health checks now that an upgrade would make",
		Long: `Make the health checks of an UpgradeConfig, or of an UpgradeJob, now and with your rights. Nothing is changed. A check that you may not make, or
that gets no answer, is a finding: nothing counts as healthy because it is unknown.

Alerts are asked for by the routes that OpenShift has for its monitoring, with the token of the kubeconfig. It needs the ClusterRole
cluster-monitoring-view and, for what is silenced, the Role monitoring-alertmanager-view in openshift-monitoring. Where the kubeconfig has a client
certificate and no token, give one by --prometheus-token-file.

The status is 0 if the cluster is healthy, and 1 if there are findings or no check has looked at the cluster.`,
		Example: fmt.Sprintf("  %[1]s check weekly\n  %[1]s check weekly --to 4.19.3 -o json\n  oc create token me > token && %[1]s check --prometheus-token-file token", t.program),

		ValidArgsFunction: t.completeConfigs,
	}
	out := addOutput(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 || (len(args) == 1 && o.job != "") {
			return usagef("want the name of one UpgradeConfig, or --job, or neither")
		}
		return t.connected(func(c client.WithWatch) error { return t.check(cmd.Context(), c, strings.Join(args, ""), o, out) })
	}
	flags := command.Flags()
	flags.StringVar(&o.job, "job", "", "Make the checks of this UpgradeJob.")
	flags.StringVar(&o.to, "to", "", "Judge for an upgrade to this version. That of the job, or the one that would be pinned now, where none is given.")
	flags.BoolVar(&o.post, "post", false, "Make the checks after the upgrade (postUpgradeHealthChecks) instead of those before.")
	o.monitoring.addFlags(flags)
	_ = command.RegisterFlagCompletionFunc("job", t.completeJobs) // the flag is there
	return command
}

// check makes the checks and prints what they found.
func (t *tool) check(ctx context.Context, c client.Client, name string, o checkOptions, out *output) error {
	cv := &configv1.ClusterVersion{}
	if err := c.Get(ctx, client.ObjectKey{Name: v1beta1.ClusterVersionName}, cv); err != nil {
		return explain("get ClusterVersion/"+v1beta1.ClusterVersionName, err)
	}
	subject, err := t.checkSubject(ctx, c, name, o.job)
	if err != nil {
		return err
	}
	report, err := t.makeChecks(ctx, c, cv, subject, o)
	if err != nil {
		return err
	}
	if out.machine() {
		err = t.printMachine(out, report)
	} else {
		err = t.printCheck(report)
	}
	if err == nil && !report.Healthy {
		err = errFindings
	}
	return err
}

// checkSubject is whose checks are made.
type checkSubject struct {
	of     string
	config v1beta1.UpgradeJobConfig
	target *v1beta1.DesiredVersion
}

// checkSubject finds the job or the config of that name. Without a name it is the only config that there is; the defaults if there is none.
func (t *tool) checkSubject(ctx context.Context, c client.Client, name, job string) (checkSubject, error) {
	if job != "" {
		jobs := &v1beta1.UpgradeJobList{}
		if _, err := t.listOurs(ctx, c, "list UpgradeJobs", jobs); err != nil {
			return checkSubject{}, err
		}
		found, err := named[v1beta1.UpgradeJob]("UpgradeJob", jobs.Items, job)
		if err != nil {
			return checkSubject{}, err
		}
		return checkSubject{"UpgradeJob " + found.LockKey(), found.Spec.Config, found.Spec.DesiredVersion}, nil
	}
	configs := &v1beta1.UpgradeConfigList{}
	if _, err := t.listOurs(ctx, c, "list UpgradeConfigs", configs); err != nil {
		return checkSubject{}, err
	}
	switch {
	case name == "" && len(configs.Items) == 0:
		return checkSubject{}, nil
	case name == "" && len(configs.Items) > 1:
		var names []string
		for i := range configs.Items {
			names = append(names, configs.Items[i].Namespace+"/"+configs.Items[i].Name)
		}
		return checkSubject{}, usagef("there are several UpgradeConfigs: name one of %s", listKnown(names))
	case name == "":
		name = configs.Items[0].Namespace + "/" + configs.Items[0].Name
	}
	found, err := named[v1beta1.UpgradeConfig]("UpgradeConfig", configs.Items, name)
	if err != nil {
		return checkSubject{}, err
	}
	return checkSubject{"UpgradeConfig " + found.Namespace + "/" + found.Name, found.Spec.JobTemplate.Spec.Config, nil}, nil
}

// checkTarget is the release for which the cluster is judged; nil if there is none.
func checkTarget(cv *configv1.ClusterVersion, subject checkSubject, to string) *openshift.Release {
	wanted := openshift.Release{Version: to}
	if to == "" && subject.target != nil {
		wanted = openshift.Release{Version: subject.target.Version, Image: subject.target.Image}
	}
	if wanted != (openshift.Release{}) {
		if offered, ok := openshift.Offered(cv, wanted); ok {
			wanted = offered
		}
		return &wanted
	}
	if highest, ok := openshift.HighestAvailable(cv); ok {
		return &highest
	}
	return nil
}

// makeChecks makes the checks of the subject's upgrader.
func (t *tool) makeChecks(ctx context.Context, c client.Client, cv *configv1.ClusterVersion, subject checkSubject, o checkOptions) (checkReport, error) {
	report := checkReport{Of: subject.of, Findings: []checkFinding{}, Checks: []string{}}
	variant, err := findUpgrader(ctx, c, &subject.config)
	if errors.Is(err, upgrader.ErrUnusable) {
		report.Findings = append(report.Findings, checkFinding{
			Check: checkConfiguration, Reason: v1beta1.ReasonUnknownUpgrader, Message: err.Error(), ClearsWhen: "config.upgrader names one that can be used",
		})
		return report, nil
	}
	if err != nil {
		return report, explain("find the upgrader", err)
	}
	config, conditions := subject.config.PreUpgradeHealthChecks, []string{steps.ConditionIsClusterUpgradable, steps.ConditionClusterHealthyBeforeUpgrade}
	if o.post {
		config, conditions = subject.config.PostUpgradeHealthChecks, []string{steps.ConditionClusterHealthyAfterUpgrade}
	}
	for _, p := range problemsOf(&subject.config) {
		report.Findings = append(report.Findings, checkFinding{Check: checkConfiguration, Reason: p.Reason, Message: p.Message, ClearsWhen: "the configuration is corrected"})
	}
	servers, err := t.findMonitoring(ctx, c, o.monitoring)
	if err != nil {
		return report, err
	}
	all := steps.HealthChecks(variant.Steps(), conditions...)
	checks, skipped := make([]healthcheck.Check, len(all)), make([]string, len(all))
	for i, check := range all {
		checks[i] = checkOfUser{check, servers, &skipped[i]}
	}
	target := checkTarget(cv, subject, o.to)
	if target != nil {
		report.Target = target.String()
	} else if !o.post {
		report.Notes = append(report.Notes, "the cluster offers no update, and no version was given (--to): what would hold up another minor version is not looked for")
	}
	answer := healthcheck.RunAll(ctx, checks, healthcheck.Request{
		Config: config, Cluster: openshift.NewCluster(c, c), Monitoring: servers.client, Version: cv, Target: target, Now: t.clock.Now(), MaxAge: healthcheck.Timeout,
	})
	for i, check := range all {
		if skipped[i] == "" {
			report.Checks = append(report.Checks, check.Name())
		} else {
			report.Skipped = append(report.Skipped, skippedCheck{check.Name(), skipped[i]})
		}
	}
	report.add(answer)
	if len(report.Findings) == 0 && servers.missing != "" { // nothing of the config needs it, or it is to be ignored
		report.Notes = append(report.Notes, servers.missing)
	}
	return report, nil
}

// add takes over what the checks found.
func (r *checkReport) add(answer healthcheck.Report) {
	for _, f := range answer.Findings {
		r.Findings = append(r.Findings, checkFinding{
			Check: f.Check, Object: f.Object, Reason: f.Reason, Message: forUser(f.Message), ClearsWhen: f.ClearsWhen, Young: f.Fresh,
		})
	}
	for _, note := range answer.Notes {
		r.Notes = append(r.Notes, forUser(note))
	}
	r.Healthy = len(r.Findings) == 0 && len(r.Checks) > 0
}

// forUser says to the user what the operator says of itself.
func forUser(text string) string {
	role := "ClusterRole cluster-monitoring-view"
	if strings.Contains(text, "Alertmanager answers") {
		role = "Role monitoring-alertmanager-view in openshift-monitoring"
	}
	return strings.ReplaceAll(text, "the operator's service account may not ask it", "your token does not allow it ("+role+" does)")
}

// notVerified is what crypto/tls says of a server whose certificate does not come of a CA that is known.
const notVerified = "failed to verify certificate"

// checkOfUser makes a check with the rights of the user, and says what they lack.
type checkOfUser struct {
	healthcheck.Check
	servers monitoringServers
	// skipped takes why the check did not look at the cluster.
	skipped *string
}

// Run makes the check. An answer that the user may not have is a finding that names the permission.
func (c checkOfUser) Run(ctx context.Context, request healthcheck.Request) (healthcheck.Report, error) {
	report, err := c.Check.Run(ctx, request)
	*c.skipped = report.Skipped
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return report, nil
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		report.Findings = append(report.Findings, healthcheck.Finding{
			Reason:     "Forbidden",
			Message:    fmt.Sprintf("%s cannot be answered: you may not: %s", c.Name(), status.Status().Message),
			ClearsWhen: "you are given that permission: the ClusterRole managed-upgrade-operator-viewer has it",
		})
		return report, nil
	case c.servers.missing != "" && request.Monitoring == nil:
		return report, errors.New(c.servers.missing)
	case strings.Contains(err.Error(), notVerified):
		return report, fmt.Errorf("%s: %s", err.Error(), c.servers.distrust)
	}
	return report, errors.New(err.Error()) // openshift.Describe would leave the details to the operator's log
}
