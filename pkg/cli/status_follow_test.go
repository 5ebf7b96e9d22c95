// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	o "github.com/appuio/managed-upgrade-operator/pkg/openshift/openshifttest"
)

// followed is a tool that follows a cluster which can be away.
type followed struct {
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakeClock
	stop   context.CancelFunc

	mutex       sync.Mutex
	away        error
	out, errOut bytes.Buffer
	status      int
	done        chan struct{}
}

// follow runs a command line in the background; it must be called in a bubble of synctest.
func follow(t *testing.T, args ...string) *followed {
	t.Helper()
	scene := scenesDuring()[1]
	f := &followed{t: t, clock: clocktesting.NewFakeClock(scene.now), done: make(chan struct{}), status: -1}
	f.client = world(scene.objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			if f.away != nil {
				return f.away
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	tool := newTool(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &f.out, ErrOut: &f.errOut}, Options{Clock: f.clock})
	tool.dial = func() (client.WithWatch, error) { return f.client, nil }
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	go func() {
		defer close(f.done)
		f.status = tool.run(ctx, args, "v0")
	}()
	synctest.Wait()
	return f
}

// news is what is printed when the clock has gone on by that much.
func (f *followed) news(after time.Duration) string {
	f.out.Reset()
	f.clock.Step(after)
	synctest.Wait()
	return f.out.String()
}

func (f *followed) setAway(err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.away = err
}

// progress has a second worker run the new release.
func (f *followed) progress() {
	f.t.Helper()
	pool := &mcfgv1.MachineConfigPool{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Name: "worker"}, pool); err != nil {
		f.t.Fatal(err)
	}
	pool.Status.UpdatedMachineCount = 2
	if err := f.client.Status().Update(f.t.Context(), pool); err != nil {
		f.t.Fatal(err)
	}
}

func (f *followed) expectEnd() {
	f.t.Helper()
	f.stop()
	<-f.done
	if f.status != ExitOK {
		f.t.Errorf("interrupted it exits with %d (%s), want 0", f.status, f.errOut.String())
	}
}

func TestFollowPrintsChangesToAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "status", "-w", "--interval", "5s")
		if first := f.out.String(); !strings.HasPrefix(first, "Cluster   4.18.2") || !strings.Contains(first, "STEPS") {
			t.Errorf("it begins with:\n%s", first)
		}
		if got := f.news(time.Minute); got != "" {
			t.Errorf("nothing happened but time, and it prints %q", got)
		}
		f.progress()
		if got, want := f.news(5*time.Second), "23:36:05 CET  pool worker: Updating, 2 of 3 machines updated\n"; got != want {
			t.Errorf("a pool got further, and it prints %q, want %q", got, want)
		}
		node := o.Node("worker-0", "worker", o.NodeTowards("worker", "4.18.2"))
		if err := f.client.Delete(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		if got, want := f.news(5*time.Second), "23:36:10 CET  node worker-0: not any more\n"; got != want {
			t.Errorf("a node is not in work any more, and it prints %q, want %q", got, want)
		}
		f.expectEnd()
	})
}

func TestFollowSurvivesAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "status", "-w", "--interval", "5s")
		f.setAway(syscall.ECONNREFUSED)
		if got := f.news(5 * time.Second); !strings.Contains(got, "the cluster does not answer, trying on") || !strings.Contains(got, "connection refused") {
			t.Errorf("the API server is away, and it prints %q", got)
		}
		for range 60 {
			if got := f.news(5 * time.Second); got != "" {
				t.Fatalf("it is still away, and it prints again: %q", got)
			}
		}
		f.progress2()
		f.setAway(nil)
		got := f.news(5 * time.Second)
		if !strings.Contains(got, "the cluster answers again") || !strings.Contains(got, "2 of 3 machines updated") {
			t.Errorf("it is back, and has got further meanwhile, and it prints %q", got)
		}
		f.expectEnd()
	})
}

// progress2 is progress while the API server is away for the tool.
func (f *followed) progress2() {
	f.setAway(nil)
	f.progress()
	f.setAway(syscall.ECONNREFUSED)
}

func TestFollowEndsAtOnceWithoutAFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "status", "nobody", "-w")
		<-f.done
		if f.status != ExitFailed || !strings.Contains(f.errOut.String(), `there is no UpgradeJob "nobody"`) {
			t.Errorf("exit status %d, %q", f.status, f.errOut.String())
		}
	})
}

func TestFollowPrintsADocumentForEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "status", "-w", "-o", "yaml")
		if first := f.out.String(); !strings.HasPrefix(first, "---\ncluster:\n") {
			t.Errorf("it begins with %.60q", first)
		}
		if got := f.news(time.Minute); got != "" {
			t.Errorf("nothing happened but time, and it prints %q", got)
		}
		f.progress()
		if got := f.news(5 * time.Second); !strings.HasPrefix(got, "---\ncluster:\n") || !strings.Contains(got, "updated: 2\n") {
			t.Errorf("a pool got further, and it prints %q", got)
		}
		f.expectEnd()
	})
}

func TestFollowRedrawsATerminal(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakeClock(window)
	tool := newTool(genericiooptions.IOStreams{Out: &out, ErrOut: &out}, Options{Clock: clock})
	f := &follower{tool: tool, output: &output{}, terminal: true}
	s := &snapshot{Now: window, Version: o.ClusterVersion(), Jobs: []v1beta1.UpgradeJob{*upgradeJob()}}
	r := statusOf(s, &s.Jobs[0])
	if err := f.show(&r); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, toTop+"Cluster   4.18.1") || !strings.HasSuffix(got, eraseLine+"\n"+eraseRest) {
		t.Errorf("it draws %q", got)
	}
	out.Reset()
	clock.Step(3 * time.Minute)
	if err := f.away(syscall.ECONNREFUSED); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), toTop+"No answer for 3m, trying on: connection refused"+eraseLine+"\n"+eraseLine+"\nCluster   4.18.1"; !strings.HasPrefix(got, want) {
		t.Errorf("without an answer it draws %q, want %q", got, want)
	}
}

func TestFit(t *testing.T) {
	const text = "1\n2\n3\n4\n5\n"
	for height, want := range map[int]string{0: text, 10: text, 6: text, 5: "1\n2\n3\n... 2 more lines\n", 3: "1\n... 4 more lines\n"} {
		if got := fit(text, height, 60); got != want {
			t.Errorf("in %d lines it is %q, want %q", height, got, want)
		}
	}
	if got, want := fit("\x1b[31mlonger than that\x1b[0m\n2\n3\n", 4, 10), "\x1b[31mlonger than that\x1b[0m\n... 2 more lines\n"; got != want {
		t.Errorf("with a line of two rows it is %q, want %q", got, want)
	}
	if got, want := fit("\x1b[31m1234567890\x1b[0m\n2\n", 3, 10), "\x1b[31m1234567890\x1b[0m\n2\n"; got != want {
		t.Errorf("with a line that just fits it is %q, want %q", got, want)
	}
}
