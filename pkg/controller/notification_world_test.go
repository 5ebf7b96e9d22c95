// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

// secretMarker is in everything that is secret.
const secretMarker = "s3cr3t"

// office is a world with receivers of notifications: an API that merges server-side applies as the CRD says, with a cache
// that may lag behind, and a log.
type office struct {
	*world
	store client.WithWatch
	mutex sync.Mutex
	// cached is the job as a cache has it that lags behind; nil for one that does not.
	cached *v1beta1.UpgradeJob
	// applyErr fails the next writes, one each.
	applyErr []error
	applies  int
	reads    int // of Secrets
	logged   strings.Builder
}

func newOffice(t *testing.T, objects ...client.Object) *office {
	t.Helper()
	o := &office{world: newWorld(t, newClusterVersion())}
	o.store = fake.NewClientBuilder().WithScheme(o.client.Scheme()).WithObjects(objects...).
		WithTypeConverters(crdConverter(t, managedfields.NewTypeConverter, "upgradejobs"), managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&v1beta1.UpgradeJob{}).Build()
	return o
}

// crdConverter returns a type converter for a kind of ours. make is managedfields.NewTypeConverter; S is inferred, so that
// the package of the schemas need not be named.
func crdConverter[S any](t *testing.T, make func(map[string]*S, bool) (managedfields.TypeConverter, error), plural string) managedfields.TypeConverter {
	t.Helper()
	data, err := os.ReadFile("../../deploy/crds/managedupgrade.appuio.io_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}{}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	found := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	found["x-kubernetes-group-version-kind"] = []map[string]string{
		{"group": v1beta1.GroupVersion.Group, "version": v1beta1.GroupVersion.Version, "kind": crd.Spec.Names.Kind},
	}
	schema := new(S)
	if data, err = json.Marshal(found); err == nil {
		err = json.Unmarshal(data, schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	converter, err := make(map[string]*S{crd.Spec.Names.Kind: schema}, false)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

// notifications returns a reconciler as a process has it that has just started.
func (o *office) notifications() *NotificationReconciler {
	cached := interceptor.NewClient(o.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if job, ok := object.(*v1beta1.UpgradeJob); ok && o.cached != nil {
				o.cached.DeepCopyInto(job)
				return nil
			}
			return c.Get(ctx, key, object, opts...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return o.apply(ctx, c, sub, config, opts...)
		},
	})
	secrets := interceptor.NewClient(o.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if _, ok := object.(*corev1.Secret); ok {
				o.reads++
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	r := setUp(o.world, &NotificationReconciler{Client: cached, Secrets: secrets, Cluster: o.cluster, Clock: o.clock})
	r.chance, r.delay = func() float64 { return 0.5 }, 0
	return r
}

// apply does what the fake API leaves out: it returns the version that was written.
func (o *office) apply(ctx context.Context, c client.Client, sub string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.applies++
	if len(o.applyErr) > 0 {
		err := o.applyErr[0]
		if o.applyErr = o.applyErr[1:]; err != nil {
			return err
		}
	}
	applied := config.(interface {
		client.Object
		runtime.Unstructured
	})
	if err := c.SubResource(sub).Apply(ctx, config, opts...); err != nil {
		return err
	}
	now := &v1beta1.UpgradeJob{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(applied), now); err != nil {
		return err
	}
	applied.SetResourceVersion(now.ResourceVersion)
	return nil
}

// tell does one pass for a receiver.
func (o *office) tell(r *NotificationReconciler, receiver string) ctrl.Result {
	o.t.Helper()
	logger := funcr.New(func(_, args string) { o.logged.WriteString(args + "\n") }, funcr.Options{Verbosity: 10})
	result, err := r.Reconcile(ctrllog.IntoContext(o.t.Context(), logger), requestFor(receiver))
	if err != nil {
		o.t.Fatalf("tell %s: %v", receiver, err)
	}
	return result
}

func requestFor(receiver string) notification {
	return notification{types.NamespacedName{Namespace: namespace, Name: "job"}, receiver}
}

// job returns the job as it is in the API.
func (o *office) job() *v1beta1.UpgradeJob {
	o.t.Helper()
	job := &v1beta1.UpgradeJob{}
	if err := o.store.Get(o.t.Context(), client.ObjectKey{Namespace: namespace, Name: "job"}, job); err != nil {
		o.t.Fatal(err)
	}
	return job
}

// happens writes transitions of the job, as its own reconciler does.
func (o *office) happens(transitions ...v1beta1.NotificationType) {
	o.t.Helper()
	job := o.job()
	base := job.DeepCopy()
	for _, t := range transitions {
		notify.Append(job, v1beta1.Notice{Type: t}, o.clock.Now())
	}
	if err := o.store.Status().Patch(o.t.Context(), job, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		o.t.Fatal(err)
	}
}

// expectStatus fails unless the job's status says that of the receiver, as "cursor delivered pending lost lastError".
func (o *office) expectStatus(receiver, want string) {
	o.t.Helper()
	s := notify.ReceiverStatus(o.job(), receiver)
	if got := strings.TrimSpace(fmt.Sprintf("%d %d %d %d %s", s.Cursor, s.Delivered, s.Pending, s.Lost, s.LastError)); got != want {
		o.t.Errorf("status of %s: %q, want %q", receiver, got, want)
	}
}

func (o *office) expectResult(what string, got ctrl.Result, want time.Duration) {
	o.t.Helper()
	if got != (ctrl.Result{RequeueAfter: want}) {
		o.t.Errorf("%s: got result %v, want to be called again after %s", what, got, want)
	}
}

// newReceivedJob returns a job that runs, with receivers.
func newReceivedJob(receivers ...v1beta1.NotificationReceiver) *v1beta1.UpgradeJob {
	return newJob("job", withPhase(v1beta1.PhaseActive), func(job *v1beta1.UpgradeJob) { job.Spec.Config.Notifications = receivers })
}

func newSecret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	s.Namespace, s.Name = namespace, name
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// webhook is a receiver that takes what it is sent, unless answer says otherwise.
type webhook struct {
	*httptest.Server
	mutex  sync.Mutex
	answer http.HandlerFunc
	bodies []string // of all attempts
}

func newWebhook(t *testing.T) *webhook {
	h := &webhook{}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.Start()
	t.Cleanup(h.Close)
	return h
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mutex.Lock()
	h.bodies = append(h.bodies, string(body))
	answer := h.answer
	h.mutex.Unlock()
	if answer != nil {
		answer(w, r)
	}
}

// as returns the receiver of that name and filter.
func (h *webhook) as(name string, events ...v1beta1.NotificationFilter) v1beta1.NotificationReceiver {
	return v1beta1.NotificationReceiver{Name: name, URL: h.URL, Events: events}
}

// fails lets the receiver answer with that status from now on; zero for none.
func (h *webhook) fails(code int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	if code == 0 {
		h.answer = nil
	}
}

// attempts returns the ids of what was sent, without the UID of the job.
func (h *webhook) attempts(t *testing.T) []string {
	t.Helper()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var ids []string
	for _, body := range h.bodies {
		event := struct{ ID, Type string }{}
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, strings.TrimPrefix(event.ID, "job-uid/")+" "+strings.TrimPrefix(event.Type, v1beta1.NotificationTypePrefix))
	}
	return ids
}

func (h *webhook) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := h.attempts(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: the receiver was sent %q, want %q", what, got, want)
	}
}
