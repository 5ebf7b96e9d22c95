// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// serviceAccountIssuer is the issuer of service accounts' tokens, as in OpenShift.
const serviceAccountIssuer = "https://kubernetes.default.svc"

// url is the address of the API server; it stays the same while it is stopped.
func (c *ControlPlane) url() string {
	return "https://" + c.ports.apiServer.Address()
}

// StartAPIServer starts the API server after StopAPIServer, on the same port and
// with the same data, and returns once it is ready. It is an error when it runs.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	return c.launch(ctx, &c.apiServer, apiServerProgram, c.apiServerArgs(), c.apiServerReady)
}

// StopAPIServer ends the API server in order, as the roll-out of a new version
// does, and returns once it is gone. Until StartAPIServer, connections are
// refused; the port stays reserved. It does nothing when the API server is stopped.
func (c *ControlPlane) StopAPIServer() error {
	return c.current(&c.apiServer).Stop(programs.StopGrace)
}

func (c *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=http://" + c.ports.etcd.Address(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.ports.apiServer.Number()),
		"--permit-port-sharing",
		"--tls-cert-file=" + c.path(serverCertificateFile),
		"--tls-private-key-file=" + c.path(serverKeyFile),
		"--client-ca-file=" + c.path(authorityFile),
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + c.path(serviceAccountKeyFile),
		"--service-account-signing-key-file=" + c.path(serviceAccountKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
		// An endpoint must not be a loopback address, and nothing looks for the
		// API server by its Service here.
		"--endpoint-reconciler-type=none",
		// When it stops, as OpenShift does: finish what is in flight, refuse the rest
		// with Retry-After, and give the clients 2 s to end their watches.
		"--shutdown-send-retry-after",
		"--authorization-mode=RBAC",
		// In addition to the defaults, PodSecurity among them. OpenShift enables
		// it: without leave to update an owner's finalizers nobody may set a
		// blockOwnerDeletion reference to it.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		// As in OpenShift, where other means decide who may run privileged containers.
		"--allow-privileged",
		// MutatingAdmissionPolicies, by which the simulated OpenShift does to pods
		// what its own admission plugins would, are off by default before 1.36.
		"--feature-gates=MutatingAdmissionPolicy=true",
		"--runtime-config=admissionregistration.k8s.io/v1beta1=true",
	}
	if c.options.Audit {
		args = append(args,
			"--audit-policy-file="+c.path(auditPolicyFile),
			"--audit-log-path="+c.AuditLog(),
			"--audit-log-mode=blocking",
			// One file, whatever its size: a reader need not know of rotation.
			"--audit-log-maxsize=100000",
		)
	}
	return append(args, c.options.APIServerArgs...)
}

// apiServerReady also waits for the namespace default, which the API server makes
// for itself after it has become ready for the first time.
func (c *ControlPlane) apiServerReady(ctx context.Context) error {
	if err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return err
	}
	_, err := c.client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
	return err
}
