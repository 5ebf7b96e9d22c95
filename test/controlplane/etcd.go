// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"net/http"

	"github.com/appuio/managed-upgrade-operator/test/programs"
)

func (c *ControlPlane) startEtcd(ctx context.Context) error {
	client, peer := "http://"+c.ports.etcd.Address(), "http://"+c.ports.etcdPeer.Address()
	args := []string{
		"--name=etcd",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		"--socket-reuse-port",
		// The data has to survive the death of etcd, not that of the machine.
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
	return c.launch(ctx, &c.etcd, etcdProgram, args, func(ctx context.Context) error {
		return programs.GetOK(ctx, http.DefaultClient, client+"/health")
	})
}
