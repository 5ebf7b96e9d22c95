// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift"
	"github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
	"github.com/appuio/managed-upgrade-operator/pkg/planner"
)

// actZone is where the users of the tests are; actNow is a Monday there.
var (
	actZone = mustZone("Europe/Zurich")
	actNow  = time.Date(2026, time.November, 23, 10, 0, 0, 0, actZone)
)

func mustZone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// actWorld is a cluster and a user before it.
type actWorld struct {
	t     *testing.T
	fakes *fake.ClientBuilder
	c     client.WithWatch
	clock *clocktesting.FakeClock
	// kubeconfig of the user; one with a token where a test writes none.
	kubeconfig string
	// funcs stand between the user and the cluster.
	funcs interceptor.Funcs
	in    string
	// asked is called when the user is asked, at a terminal. Nil: they have none.
	asked func()
}

// newActWorld returns a cluster that runs 4.18.1 and is offered 4.18.2, with those objects.
func newActWorld(t *testing.T, objects ...client.Object) *actWorld {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &actWorld{t: t, clock: clocktesting.NewFakeClock(actNow), kubeconfig: filepath.Join(t.TempDir(), "config")}
	w.writeKubeconfig("https://api.example.com:6443", "token: of-the-user")
	w.fakes = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.UpgradeJob{}, &v1beta1.UpgradeConfig{}).WithObjects(objects...)
	w.c = w.fakes.Build()
	return w
}

func (w *actWorld) writeKubeconfig(server, user string) {
	w.t.Helper()
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster: {server: %q}\n"+
		"contexts:\n- name: x\n  context: {cluster: x, user: x, namespace: upgrades}\nusers:\n- name: x\n  user: {%s}\n", server, user)
	if err := os.WriteFile(w.kubeconfig, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run calls the plugin, and returns what it printed, with the exit status, as it goes into a golden file.
func (w *actWorld) run(args ...string) (string, int) {
	w.t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(w.in), Out: &out, ErrOut: &errOut}
	tool := newTool(streams, Options{Clock: w.clock})
	tool.dial = func() (client.WithWatch, error) { return interceptor.NewClient(w.c, w.funcs), nil }
	if w.asked != nil {
		tool.terminal = func(stream any) bool { return stream == tool.In }
		tool.In = &onRead{Reader: tool.In, do: w.asked}
	}
	status := tool.run(context.Background(), append(args, "--kubeconfig", w.kubeconfig), "v0")
	text := fmt.Sprintf("$ oc managed-upgrade %s\n%s", strings.Join(args, " "), out.String())
	if errOut.Len() > 0 {
		text += "--- stderr\n" + errOut.String()
	}
	return fmt.Sprintf("%s--- status %d\n", text, status), status
}

// onRead does something before it is read from.
type onRead struct {
	io.Reader
	do func()
}

func (r *onRead) Read(content []byte) (int, error) {
	r.do()
	return r.Reader.Read(content)
}

// expect runs the plugin, wants the status, and compares the output with the golden file of that name.
func (w *actWorld) expect(file string, want int, args ...string) {
	w.t.Helper()
	text, status := w.run(args...)
	if status != want {
		w.t.Errorf("status %d, want %d; output:\n%s", status, want, text)
	}
	text = strings.ReplaceAll(text, filepath.Dir(w.kubeconfig), "DIR")
	golden(w.t, "act/"+file+".txt", text)
}

// change changes an object of the cluster, also its status.
func (w *actWorld) change(object client.Object, change func()) {
	w.t.Helper()
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	change()
	changed := object.DeepCopyObject().(client.Object)
	if err := w.c.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	changed.SetResourceVersion(object.GetResourceVersion())
	if err := w.c.Status().Update(w.t.Context(), changed); err != nil && !apierrors.IsNotFound(err) { // some kinds have no status of their own here
		w.t.Fatal(err)
	}
}

// jobs are the UpgradeJobs that there are.
func (w *actWorld) jobs() []v1beta1.UpgradeJob {
	w.t.Helper()
	list := &v1beta1.UpgradeJobList{}
	if err := w.c.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// get reads an object anew.
func get[T any, P interface {
	*T
	client.Object
}](w *actWorld, object P) P {
	w.t.Helper()
	found := P(new(T))
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(object), found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

// denied is the answer of an API server that does not let the user.
func denied(verb, resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("User %q cannot %s resource %q at the cluster scope", "me", verb, resource))
}

// conflict is the answer to a write of what has changed.
func conflict(resource, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, fmt.Errorf("the object has been modified"))
}

// actConfig starts on Tuesdays at 22:00 in Zurich.
func actConfig(options ...func(*v1beta1.UpgradeConfig)) *v1beta1.UpgradeConfig {
	config := &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "weekly", UID: "uid-weekly", Labels: map[string]string{"tier": "prod"}, CreationTimestamp: metav1.NewTime(actNow.AddDate(0, -1, 0))},
		Spec: v1beta1.UpgradeConfigSpec{
			Schedule:    v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich"},
			JobTemplate: v1beta1.UpgradeJobTemplate{Metadata: v1beta1.TemplateMetadata{Labels: map[string]string{"tier": "prod"}}},
		},
	}
	for _, option := range options {
		option(config)
	}
	return config
}

// actJob is a job of the config.
func actJob(config *v1beta1.UpgradeConfig, start time.Time, phase v1beta1.Phase, options ...func(*v1beta1.UpgradeJob)) *v1beta1.UpgradeJob {
	job := planner.NewJob(config, start.UTC(), &openshift.Release{Version: "4.18.2", Image: openshifttest.Image("4.18.2")})
	job.Status.Phase = phase
	if phase != v1beta1.PhasePending && phase != v1beta1.PhaseSkipped {
		job.Status.StartTime = &metav1.Time{Time: start.UTC()}
	}
	if phase.Finished() {
		job.Finalizers = nil
	}
	for _, option := range options {
		option(job)
	}
	return job
}

// actWindow covers a time, for what it selects.
func actWindow(name string, start, end time.Time, options ...func(*v1beta1.UpgradeSuspensionWindow)) *v1beta1.UpgradeSuspensionWindow {
	w := &v1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: name},
		Spec:       v1beta1.UpgradeSuspensionWindowSpec{Start: metav1.NewTime(start.UTC()), End: metav1.NewTime(end.UTC()), Reason: "Black Friday."},
	}
	for _, option := range options {
		option(w)
	}
	return w
}

func ofConfigs(w *v1beta1.UpgradeSuspensionWindow) { w.Spec.ConfigSelector = &metav1.LabelSelector{} }
func ofJobs(w *v1beta1.UpgradeSuspensionWindow)    { w.Spec.JobSelector = &metav1.LabelSelector{} }

// actHook runs at those events of every job.
func actHook(name string, events ...v1beta1.HookEvent) *v1beta1.UpgradeJobHook {
	return &v1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: name}, Spec: v1beta1.UpgradeJobHookSpec{Events: events}}
}

// heldBy has the cluster locked by a job.
func heldBy(holder string) func(*configv1.ClusterVersion) {
	return func(cv *configv1.ClusterVersion) { cv.Annotations[v1beta1.UpgradeJobAnnotation] = holder }
}

// ofPool is a pool of the name, of three machines.
func ofPool(name string, options ...func(*mcfgv1.MachineConfigPool)) *mcfgv1.MachineConfigPool {
	return openshifttest.Pool(name, options...)
}
