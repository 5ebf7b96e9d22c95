// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/steps"
	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/openshift/sim"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// markOfWithdrawn stands on the pods of a hook that is deleted before its batch Job can be created.
const markOfWithdrawn = "tour.example.com/withdrawn"

// nextMinor is the release that the tour upgrades to.
const nextMinor = "4.19.0"

// everything is an order of all steps that can stand in one list: what OSD and ARO do, with hooks and delayed pools.
var everything = []string{
	startedSent, notDelayed, upgradable, steps.ConditionStartHooksCompleted, steps.ConditionMachineConfigPoolsPaused, healthyBefore,
	dependenciesThere, capacityReserved, steps.ConditionUpdateAvailable, controlPlaneQuiet, commenced, controlPlaneIsDone, controlPlaneLoud,
	workersQuiet, steps.ConditionMachineConfigPoolsUpgraded, capacityRemoved, workersLoud, healthyAfter, steps.ConditionCompletionHooksCompleted,
	steps.ConditionDelayedPoolsUpgraded, postUpgradeTasks, completedSent,
}

// tour is a cluster on which the operator uses everything that it has.
type tour struct {
	*cluster
	proxies *monitoringProxies
	scraper *scraper
	window  *v1beta1.UpgradeSuspensionWindow
	config  *v1beta1.UpgradeConfig
	job     *v1beta1.UpgradeJob
	// shop is a namespace whose pods hold up drains.
	shop string
	// receiver takes nothing before its time.
	receiver *receiver.Receiver
	// withdrawn is a hook that is deleted before its batch Job can be created.
	withdrawn *v1beta1.UpgradeJobHook
}

// travelled is what a tour leaves for those who judge it.
type travelled struct {
	// began is before the operator was started.
	began time.Time
	// requests are those that the operator made, and what the monitoring asked the cluster about it.
	requests []controlplane.AuditEvent
	asked    []access
	// owned are objects that the operator created with an owner that is not to go before them, one of each kind and kind of owner.
	owned []client.Object
}

// theTour is the tour of this run: one is enough for all tests that judge it.
var theTour *travelled

// takeTour returns the tour of this run. The first one to ask takes it.
func takeTour(t *testing.T) *travelled {
	t.Helper()
	if theTour == nil {
		t.Run("the tour", func(t *testing.T) { theTour = travel(t) })
	}
	if theTour == nil {
		t.Fatal("the tour did not come to its end")
	}
	return theTour
}

// withEverything is a small cluster with all kinds that the operator knows.
func withEverything(s *sim.Scenario) {
	withFewNodes(s)
	withPool("infra", 1)(s)
	withPool("night", 1)(s)
	offering(nextMinor)(s)
	all := intstr.FromString("100%")
	s.Workers.MaxUnavailable = &all // the extra worker is not to wait for the other one
	s.MachineConfigNodes = true
	s.Timings.Operators = map[string]sim.Duration{"network": sim.Duration(2 * time.Second)} // else the progress of the control plane is over in a moment
	s.FileIntegrity = &sim.FileIntegrity{}
	s.MachineAPI = &sim.MachineAPI{MachineSets: []sim.InstalledMachineSet{
		{Name: "a-worker", Labels: map[string]string{machinePool: "worker"}},
		{Name: "b-infra", Labels: map[string]string{machinePool: "infra"}, Pool: "infra"},
	}}
	s.Nodes = []sim.NodeFault{{Name: "worker-0", HangsDraining: true}}
}

// travel takes the tour: one upgrade, to the next minor release, in which nothing is left out.
func travel(t *testing.T) *travelled {
	tour := &tour{cluster: newClusterFor(t, 2*patience, withEverything)}
	tour.allowForceDrains()
	tour.proxies, tour.scraper = tour.startMonitoringProxies(), tour.newScraper()
	tour.configure()
	// As it is where the API server cannot stream lists: the operator lists, and then watches.
	older := tour.scraper.start(environment.OperatorOptions{Args: tour.proxies.flags(), Env: []string{"KUBE_FEATURE_WatchListClient=false"}})
	tour.managed()
	tour.schedule()
	tour.stopInOrder(older) // it gives the lease back, which the next one finds
	proxy := tour.startProxy()
	operator := tour.scraper.start(environment.OperatorOptions{Args: tour.proxies.flags(), Server: proxy.URL(), ServerCA: proxy.CA()})
	tour.preview()
	tour.begin(proxy)
	tour.upgrade()
	tour.stopInOrder(operator)
	operator = tour.release()
	tour.leave()
	tour.scraper.tellsOfNothing(operator)
	tour.stopInOrder(operator)
	return tour.record()
}

func (t *tour) stopInOrder(o *environment.Operator) {
	t.t.Helper()
	if err := o.Stop(); err != nil {
		t.t.Errorf("the operator does not stop in order: %v", err)
	}
}

// managed has an object of the Managed Upgrade Operator, with its tunables, change its mind before its time.
func (t *tour) managed() {
	t.t.Helper()
	tunables := t.tunables("healthCheck:\n  ignoredCriticals: [Watchdog]\n")
	config := create(t.cluster, aManaged(wanting(nextMinor, theChannel), upgradingAt(soon(24*time.Hour))))
	first := t.wait(t.managedJob(config), notStarted(v1beta1.ReasonWaitingForStart))
	edit(t.cluster, tunables, func(tunables *corev1.ConfigMap) {
		tunables.Data["config.yaml"] = "healthCheck:\n  ignoredCriticals: [Watchdog, KubeAPIDown]\n"
	})
	t.eventually("the job is replaced", func() error {
		if t.managedJob(config).UID == first.UID {
			return errors.New("it is still there")
		}
		return nil
	})
	t.scraper.tells("muo_upgradeconfig_info")
	t.remove(config)
	t.gone(config)
}

// configure creates what is there before the operator: a config that is held back by a window, and has a past: more jobs than it keeps, which took
// long to give back what they held, and a start for which there was none.
func (t *tour) configure() {
	t.t.Helper()
	t.shop = t.namespace(map[string]string{"tier": "batch"})
	t.window = create(t.cluster, aFreeze(ofAllConfigs))
	t.config = create(t.cluster, aConfig(creatingAJobNow(), t.ofEverything()))
	t.createFinished(t.config, 1, v1beta1.PhaseFailed)
	t.createFinished(t.config, 2, v1beta1.PhaseFailed)
	for _, job := range t.jobsOf(t.config) {
		editStatus(t.cluster, &job, func(job *v1beta1.UpgradeJob) {
			meta.SetStatusCondition(&job.Status.Conditions, v1beta1.StepHolds(v1beta1.ConditionGivenBack, true, v1beta1.ReasonReleased, "The job holds nothing any more."))
		})
	}
	editStatus(t.cluster, t.config, func(config *v1beta1.UpgradeConfig) {
		config.Status.LastSkippedStart = &v1beta1.SkippedStart{StartAfter: metav1.NewTime(time.Now().Add(-time.Hour)), Reason: v1beta1.ReasonSuspended}
	})
	t.fromNowOn()
}

// schedule has each kind be looked at for the first time, and then the config create its job.
func (t *tour) schedule() {
	t.t.Helper()
	t.waitUpgrader(create(t.cluster, anUpgrader("everything", everything...)), metav1.ConditionTrue, v1beta1.ReasonValid)
	t.waitSync(create(t.cluster, aClusterVersion(onChannel("fast-4.18"), withOverlays)), metav1.ConditionTrue, v1beta1.ReasonSynced)
	drain := aForceDrain(3*time.Second, func(spec *v1beta1.NodeForceDrainSpec) {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "batch"}}
	})
	t.waitForceDrain(create(t.cluster, drain), metav1.ConditionTrue, v1beta1.ReasonValid)
	t.waitConfig(t.config, v1beta1.ConditionScheduling, metav1.ConditionFalse, v1beta1.ReasonSuspensionWindow)
	create(t.cluster, aHook(hookNamed("once"), forTheNextJob, at(v1beta1.HookEventCreate, v1beta1.HookEventFailure)))
	create(t.cluster, aHook(hookNamed("always"), at(v1beta1.HookEventStart, v1beta1.HookEventFinish), failing("no space left")))
	create(t.cluster, aHook(hookNamed("unpause"), at(unpause), hanging))
	t.withdrawn = create(t.cluster, aHook(hookNamed("withdrawn"), at(v1beta1.HookEventStart), func(hook *v1beta1.UpgradeJobHook) {
		play(hook, markOfWithdrawn, "yes")
	}))
	t.scraper.tells("upgradeconfig_suspended", "upgradesuspensionwindow_matching_config")
	t.remove(t.window)
	t.eventually("the job of the tour", func() error {
		for _, job := range t.jobsOf(t.config) {
			if job.Labels["tour"] == "yes" {
				t.job = &job
				return nil
			}
		}
		return fmt.Errorf("there is none among %d", len(t.jobsOf(t.config)))
	})
	t.wait(t.job, wouldBe(metav1.ConditionTrue, v1beta1.ReasonHealthy))
}

// withOverlays has one overlay apply, and another one later.
func withOverlays(cv *v1beta1.ClusterVersion) {
	for _, from := range []time.Duration{-time.Hour, time.Hour} {
		cv.Spec.Overlays = append(cv.Spec.Overlays, v1beta1.ClusterVersionOverlay{
			From:    metav1.NewTime(time.Now().Add(from)),
			Overlay: v1beta1.ClusterVersionTemplate{Spec: v1beta1.DesiredClusterVersionSpec{Channel: "fast-4.18"}},
		})
	}
}

// ofEverything has the jobs of a config use all that there is.
func (t *tour) ofEverything() func(*v1beta1.UpgradeConfig) {
	t.t.Helper()
	const delay = 12 * time.Second // which is not over when the job comes to hold the pools
	gate := t.aDependency()
	t.receiver = t.aReceiver()
	t.receiver.FailWith(http.StatusServiceUnavailable, -1)
	template := aJob(upgradedBy("everything"), silencing("KubeAPIDown"), reserving(time.Minute, "infra"), depending(gate.URL), reinitializing,
		attentive(excludingNamespace(t.shop)), forcingDrains(4*time.Second, 4*time.Second, time.Second), delaying("infra", delay, 0),
		delaying("night", delay, 0), notifying(t.knownAs("all", t.receiver)))
	return func(config *v1beta1.UpgradeConfig) {
		config.Spec.FailedJobsHistoryLimit = new(int32(1))
		config.Spec.JobTemplate.Spec.Config = template.Spec.Config
		config.Spec.JobTemplate.Metadata.Labels = map[string]string{"tour": "yes"}
	}
}

// preview has a job that waits tell of what would hold it up. It tells it twice, which makes one Event.
func (t *tour) preview() {
	t.t.Helper()
	for range 2 {
		t.change(degraded("storage"))
		t.wait(t.job, wouldBe(metav1.ConditionFalse, v1beta1.ReasonUnhealthy))
		t.change(func(s *sim.Scenario) { s.Operators = nil })
		t.wait(t.job, wouldBe(metav1.ConditionTrue, v1beta1.ReasonHealthy))
	}
	t.scraper.tells("upgradejob_preflight_healthy", "upgradejob_notifications_oldest_pending_timestamp_seconds")
	t.receiver.Release()
}

// begin starts the job, which finds a hook that is withdrawn before its batch Job could be created, and what keeps it from the next minor
// release. That is mended.
func (t *tour) begin(proxy *environment.Proxy) {
	t.t.Helper()
	proxy.Interpose(func(_ int, w environment.Write) *environment.Fault {
		if w.Method == http.MethodPost && strings.HasSuffix(w.Path, "/jobs") && strings.Contains(w.Body, markOfWithdrawn) {
			return &environment.Fault{Code: http.StatusInternalServerError}
		}
		return nil
	})
	api := t.requestRemovedAPI("flowschemas.v1beta3.flowcontrol.apiserver.k8s.io", "system:serviceaccount:shop:deployer", "deployer/v1.2")
	t.protect(t.runs(t.shop, "web", "worker-0"), t.runs(t.shop, "cart", "worker-0"))
	t.startNow(t.job)
	t.wait(t.job, func(job *v1beta1.UpgradeJob) error {
		if len(runsOf(job, t.withdrawn.Name, v1beta1.HookEventStart)) == 0 {
			return errors.New("the hook that is to be withdrawn has no run")
		}
		return nil
	})
	t.remove(t.withdrawn)
	t.wait(t.job, unhealthy(), blockedBy("RemovedAPIInUse", "APIRequestCount/"+api.Name))
	t.scraper.tells("upgradejob_blockers", "upgradejob_health_findings")
	t.remove(api)
}

// leave deletes what there is while the operator still runs, first the job that a hook waits for.
func (t *tour) leave() {
	t.t.Helper()
	t.remove(t.config)
	t.gone(t.config)
	t.gone(t.job)
	once := &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: "once"}}
	t.eventually("the hook is free for another job", func() error {
		t.get(once)
		if once.Status.ClaimedBy != nil {
			return fmt.Errorf("it is claimed by %s", once.Status.ClaimedBy.Name)
		}
		return nil
	})
	if err := removeOurs(t.ctx); err != nil {
		t.t.Fatal(err)
	}
}

// record keeps what the tour has shown.
func (t *tour) record() *travelled {
	t.t.Helper()
	record := &travelled{began: t.born, requests: t.operatorRequests(), asked: t.proxies.accesses()}
	owners := map[string]bool{}
	keep := func(object client.Object) {
		for _, owner := range object.GetOwnerReferences() {
			kind := fmt.Sprintf("%T of %s %s", object, owner.APIVersion, owner.Kind)
			if owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion && !owners[kind] {
				owners[kind] = true
				record.owned = append(record.owned, object)
			}
		}
	}
	for _, r := range past.jobsSince(t.began) {
		keep(r.object)
	}
	for _, r := range past.hookJobsSince(t.began) {
		keep(r.object)
	}
	for _, r := range past.forceDrainsSince(t.began) {
		keep(r.object)
	}
	return record
}
