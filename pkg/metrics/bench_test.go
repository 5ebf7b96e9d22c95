// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// memory is a reader that gives what it has itself, as the manager's cache does when it is asked for no copies.
type memory struct {
	version *configv1.ClusterVersion
	lists   map[string][]runtime.Object
}

// add takes an object. Of nodes it keeps what the operator's cache does: the metadata of those that are cordoned.
func (m *memory) add(object client.Object) {
	key := fmt.Sprintf("%TList", object)
	switch o := object.(type) {
	case *configv1.ClusterVersion:
		m.version = o
		return
	case *corev1.Node:
		node := &metav1.PartialObjectMetadata{ObjectMeta: o.ObjectMeta}
		key, object = fmt.Sprintf("%TList", node), node
	}
	if m.lists == nil {
		m.lists = map[string][]runtime.Object{}
	}
	m.lists[key] = append(m.lists[key], object)
}

func (m *memory) copy() map[string][]runtime.Object {
	all := map[string][]runtime.Object{"version": {m.version.DeepCopy()}}
	for key, list := range m.lists {
		for _, object := range list {
			all[key] = append(all[key], object.DeepCopyObject())
		}
	}
	return all
}

func (m *memory) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	version, ok := object.(*configv1.ClusterVersion)
	if !ok || m.version == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	*version = *m.version
	return nil
}

func (m *memory) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return meta.SetList(list, m.lists[fmt.Sprintf("%T", list)])
}

// largeWorld is a cluster in the middle of an upgrade: of its nodes three are being drained, whatever their number.
func largeWorld(nodes int) *memory {
	m := &memory{}
	m.add(newVersion(nil))
	for i := range 10 {
		m.add(newPool(fmt.Sprintf("pool-%d", i), func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = int32(nodes / 10) }))
	}
	for i := range 3 {
		m.add(newNode(fmt.Sprintf("worker-%d", i), "state", "Working", "desiredDrain", "drain-1"))
	}
	for i := range 10 {
		m.add(newConfig(func(c *v1beta1.UpgradeConfig) {
			c.Name, c.UID = fmt.Sprintf("config-%d", i), ""
			for n := range 10 {
				c.Status.NextPossibleSchedules = append(c.Status.NextPossibleSchedules, at(n*86400))
			}
		}))
	}
	for i := range 8 {
		m.add(newJob(fmt.Sprintf("job-%d", i), running, withManySteps))
	}
	return m
}

// withManySteps gives a job 17 steps that are done, as OSD has.
func withManySteps(job *v1beta1.UpgradeJob) {
	job.Spec.Config.Upgrader = "OSD"
	job.Status.Steps = nil
	for i := range 17 {
		name := fmt.Sprintf("StepOfAnUpgradeNumber%d", i)
		job.Status.Steps = append(job.Status.Steps, v1beta1.StepStatus{Condition: name, StartTime: at(i), CompletionTime: ptrAt(i + 1)})
		job.Status.Conditions = append(job.Status.Conditions, v1beta1.StepDone(name, "The step is done."))
	}
}

// BenchmarkScrape measures a whole answer to Prometheus, and its size.
func BenchmarkScrape(b *testing.B) {
	for _, nodes := range []int{9, 250, 2000} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			handler := newScrapeHandler(largeWorld(nodes))
			var size int64
			for b.Loop() {
				size = scrape(b, handler)
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}

// The answer does not grow with the cluster, but for the digits of its numbers.
func TestScrapeDoesNotGrow(t *testing.T) {
	small, large := scrape(t, newScrapeHandler(largeWorld(9))), scrape(t, newScrapeHandler(largeWorld(2000)))
	if difference := large - small; difference < 0 || difference > 3*10 {
		t.Errorf("got %d bytes for 9 nodes, %d for 2000", small, large)
	}
}

func newScrapeHandler(reader client.Reader) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newTestCollector(reader, nil))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// scrape asks once, and returns how long the answer is.
func scrape(tb testing.TB, handler http.Handler) int64 {
	tb.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		tb.Fatalf("got %d: %s", answer.Code, answer.Body)
	}
	size, err := io.Copy(io.Discard, answer.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return size
}
