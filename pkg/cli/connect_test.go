// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// kubeconfig writes one for a server and returns its name.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":"upgrades"}}],"users":[{"name":"u","user":{"token":"t"}}]}`, server)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// api is the discovery of an API server.
func api(groups ...string) *http.ServeMux {
	mux := http.NewServeMux()
	list := make([]string, 0, len(groups))
	for _, group := range groups {
		version := fmt.Sprintf(`{"groupVersion":"%s/v1","version":"v1"}`, group)
		list = append(list, fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, group, version, version))
	}
	mux.HandleFunc("/api", answer(`{"kind":"APIVersions","versions":["v1"]}`))
	mux.HandleFunc("/api/v1", answer(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`))
	mux.HandleFunc("/apis", answer(fmt.Sprintf(`{"kind":"APIGroupList","apiVersion":"v1","groups":[%s]}`, strings.Join(list, ","))))
	return mux
}

// answer answers with JSON.
func answer(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, content)
	}
}

// resources answers discovery of a group and version with kinds, and other requests of it with rest.
func resources(mux *http.ServeMux, groupVersion, list string, rest http.HandlerFunc) {
	mux.HandleFunc("/apis/"+groupVersion, answer(fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`, groupVersion, list)))
	mux.HandleFunc("/apis/"+groupVersion+"/", rest)
}

const clusterVersions = `{"name":"clusterversions","kind":"ClusterVersion","namespaced":false,"verbs":["get"]}`

func status(code int, reason, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
	}
}

// openShift answers as an API server that has OpenShift's ClusterVersion, and nothing else.
func openShift() *http.ServeMux {
	mux := api("config.openshift.io")
	resources(mux, "config.openshift.io/v1", clusterVersions, answer(`{"kind":"ClusterVersion","apiVersion":"config.openshift.io/v1","metadata":{"name":"version"}}`))
	return mux
}

func TestErrorsSayWhatToDo(t *testing.T) {
	refused := api("config.openshift.io")
	resources(refused, "config.openshift.io/v1", clusterVersions, status(http.StatusForbidden, "Forbidden", "clusterversions is forbidden: User jane cannot get it"))
	unknown := http.NewServeMux()
	unknown.HandleFunc("/", status(http.StatusUnauthorized, "Unauthorized", "Unauthorized"))
	none := api("config.openshift.io")
	resources(none, "config.openshift.io/v1", clusterVersions, status(http.StatusNotFound, "NotFound", "clusterversions version not found"))
	slow := http.NewServeMux()
	slow.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })

	for _, tc := range []struct {
		reason string
		server http.Handler
		tls    bool
		want   []string
	}{
		{"a user without rights", refused, false, []string{"get ClusterVersion/version", "jane", "managed-upgrade-operator-viewer"}},
		{"a token that has expired", unknown, false, []string{"log in again"}},
		{"a cluster without our kinds", openShift(), false, []string{"list UpgradeJobs", "the managed upgrade operator is not installed"}},
		{"a cluster that is not OpenShift", api("apps"), false, []string{"is this an OpenShift cluster?"}},
		{"a cluster without ClusterVersion/version", none, false, []string{"is this an OpenShift cluster?"}},
		{"an API server that does not answer", slow, false, []string{"does not answer in time", "--request-timeout"}},
		{"a certificate of somebody", openShift(), true, []string{"cannot be trusted"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := httptest.NewUnstartedServer(tc.server)
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is what is tested
			if tc.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			timeout := "1m"
			if tc.server == slow {
				timeout = "300ms"
			}
			expectError(t, tc.want, "status", "--kubeconfig", kubeconfig(t, server.URL), "--request-timeout", timeout)
		})
	}
	t.Run("no kubeconfig", func(t *testing.T) {
		t.Setenv("KUBECONFIG", "")
		t.Setenv("HOME", t.TempDir())
		expectError(t, []string{"find the cluster", "oc login"}, "status")
	})
	t.Run("a context that is not there", func(t *testing.T) {
		expectError(t, []string{"find the cluster", "nowhere"}, "status", "--kubeconfig", kubeconfig(t, "http://127.0.0.1:1"), "--context", "nowhere")
	})
	t.Run("nobody listens", func(t *testing.T) {
		expectError(t, []string{"cannot be reached"}, "status", "--kubeconfig", kubeconfig(t, "http://127.0.0.1:1"))
	})
}

// expectError runs a command line against a server, and expects one line of an error that has these words.
func expectError(t *testing.T, want []string, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
	status := Run(context.Background(), args, streams, Options{Clock: clocktesting.NewFakeClock(window)})
	if status != ExitFailed || out.Len() > 0 {
		t.Errorf("exit status %d, want 1; stdout %q", status, out.String())
	}
	for _, words := range want {
		if !strings.Contains(errOut.String(), words) {
			t.Errorf("it says %q, want %q in it", errOut.String(), words)
		}
	}
	if got := errOut.String(); !strings.HasPrefix(got, "error: ") || strings.Count(got, "\n") != 1 {
		t.Errorf("it says %q, want one line that begins with error:", got)
	}
}

// forbid refuses to list objects of the type of which refuse says so.
func forbid(refuse func(client.ObjectList, *client.ListOptions) bool) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if refuse(list, (&client.ListOptions{}).ApplyOptions(options)) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", fmt.Errorf("user jane may not list them"))
		}
		return c.List(ctx, list, options...)
	}}
}

func TestStatusDoesWithoutWhatMayNotBeRead(t *testing.T) {
	scene := scenesDuring()[2]
	c := world(scene.objects...).WithInterceptorFuncs(forbid(func(list client.ObjectList, _ *client.ListOptions) bool {
		switch list.(type) {
		case *configv1.ClusterOperatorList, *mcfgv1.MachineConfigPoolList:
			return true
		}
		return false
	})).Build()
	out, errOut, status := runTool(t, c, scene.now, "status")
	if status != ExitOK || errOut != "" {
		t.Errorf("exit status %d, %s", status, errOut)
	}
	golden(t, "look/forbidden/status.txt", out)
}

func TestStatusFailsWhereJobsMayNotBeRead(t *testing.T) {
	scene := scenesDuring()[2]
	c := world(scene.objects...).WithInterceptorFuncs(forbid(func(list client.ObjectList, _ *client.ListOptions) bool {
		_, jobs := list.(*v1beta1.UpgradeJobList)
		return jobs
	})).Build()
	out, errOut, status := runTool(t, c, scene.now, "status")
	if status != ExitFailed || out != "" || !strings.Contains(errOut, "list UpgradeJobs") || !strings.Contains(errOut, "managed-upgrade-operator-viewer") {
		t.Errorf("exit status %d, stdout %q, stderr %q", status, out, errOut)
	}
}

func TestOnlyOneNamespaceMayBeRead(t *testing.T) {
	scene := scenesAfter()[0]
	c := world(scene.objects...).WithInterceptorFuncs(forbid(func(list client.ObjectList, options *client.ListOptions) bool {
		_, jobs := list.(*v1beta1.UpgradeJobList)
		return jobs && options.Namespace == ""
	})).Build()
	t.Setenv("KUBECONFIG", kubeconfig(t, "http://127.0.0.1:1"))
	out, errOut, status := runTool(t, c, scene.now, "history")
	if status != ExitOK || !strings.Contains(out, "upgrades/weekly-1795554000-abc1234") {
		t.Errorf("the namespace of the kubeconfig is not looked at: exit status %d, %q, %s", status, out, errOut)
	}
}
