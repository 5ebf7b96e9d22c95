// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/test/controlplane"
	"github.com/appuio/managed-upgrade-operator/test/environment"
)

// user is somebody who calls the plugin.
type user struct {
	t *testing.T
	// kubeconfig is a path; it need not be there.
	kubeconfig string
}

// answer is what a call printed, and its exit status.
type answer struct {
	stdout, stderr string
	status         int
}

// roles that the tests give to users.
const (
	viewerRole   = "managed-upgrade-operator-viewer"
	editorRole   = "managed-upgrade-operator-editor"
	releaserRole = "managed-upgrade-operator-pool-releaser"
)

// aUser is a service account with roles of the cluster, and of the operator's namespace the role editor if it is among them.
func aUser(t *testing.T, name string, roles ...string) user {
	t.Helper()
	ctx := t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	ensure(t, account)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}}
	for _, role := range roles {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		if role == editorRole {
			ensure(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name + "-" + role}, RoleRef: ref, Subjects: subjects})
			continue
		}
		ensure(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role}, RoleRef: ref, Subjects: subjects})
	}
	token, err := env.ServiceAccountToken(ctx, account.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	u := user{t, filepath.Join(env.Dir(), "user-"+name)}
	if err := env.WriteKubeconfig(u.kubeconfig, token, controlplane.InNamespace(environment.Namespace)); err != nil {
		t.Fatal(err)
	}
	return u
}

func ensure(t *testing.T, object client.Object) {
	t.Helper()
	if err := env.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// runs calls the plugin through kubectl, without a terminal and with nothing on stdin.
func (u user) runs(args ...string) answer {
	u.t.Helper()
	return u.runsWith("", args...)
}

// runsWith is runs with something on stdin.
func (u user) runsWith(stdin string, args ...string) answer {
	u.t.Helper()
	return u.executes(stdin, env.Kubectl(), append([]string{"managed-upgrade"}, args...)...)
}

// executes runs a program that finds the plugin on its PATH, with something on stdin.
func (u user) executes(stdin, program string, args ...string) answer {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{
		"PATH=" + plugins + string(os.PathListSeparator) + os.Getenv("PATH"), "KUBECONFIG=" + u.kubeconfig,
		"HOME=" + env.Dir(), "TZ=UTC", "LC_ALL=C.UTF-8", "COLUMNS=120",
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(stdin), &stdout, &stderr, time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must calls the plugin, and wants it to succeed.
func (u user) must(args ...string) string {
	u.t.Helper()
	a := u.runs(args...)
	if a.status != 0 {
		u.t.Fatalf("kubectl managed-upgrade %s ends with %d\n%s%s", strings.Join(args, " "), a.status, a.stdout, a.stderr)
	}
	return a.stdout
}
