// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

// controllers are those whose work an operator sees: it owns objects, runs Jobs,
// reads PodDisruptionBudgets, and is granted roles, some of them aggregated.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"disruption-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"serviceaccount-controller",
	"ttl-after-finished-controller",
}

// RestartControllerManager restarts kube-controller-manager, so that its garbage
// collector knows at once the kinds that were installed since it started. It is an
// error when the control plane runs without one.
func (c *ControlPlane) RestartControllerManager(ctx context.Context) error {
	p := c.current(&c.controllerManager)
	if p == nil {
		return fmt.Errorf("restart %s: the control plane runs without it", controllerManagerProgram)
	}
	if err := p.Stop(programs.StopGrace); err != nil {
		return err
	}
	return c.startControllerManager(ctx)
}

func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	url := "https://" + c.ports.controllerManager.Address() + "/healthz"
	client, err := rest.HTTPClientFor(&rest.Config{
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.Bundle()},
	})
	if err != nil {
		return fmt.Errorf("make a client for the health of %s: %w", controllerManagerProgram, err)
	}
	defer client.CloseIdleConnections()
	return c.launch(ctx, &c.controllerManager, controllerManagerProgram, c.controllerManagerArgs(),
		func(ctx context.Context) error { return programs.GetOK(ctx, client, url) })
}

func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path(controllerManagerKubeconfigFile),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.ports.controllerManager.Number()),
		"--permit-port-sharing",
		"--tls-cert-file=" + c.path(serverCertificateFile),
		"--tls-private-key-file=" + c.path(serverKeyFile),
		"--controllers=" + strings.Join(controllers, ","),
		// Each controller under its own name, as in a real cluster and its audit log.
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.path(serviceAccountKeyFile),
		"--leader-elect=false",
		// Far above what tests ask for, so that no test waits for a client's rate limit.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	}
}
