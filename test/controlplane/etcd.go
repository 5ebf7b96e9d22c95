// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net/http"
)

func (c *ControlPlane) startEtcd(ctx context.Context) error {
	client, peer := "http://"+c.ports.etcd.address(), "http://"+c.ports.etcdPeer.address()
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
		return getOK(ctx, http.DefaultClient, client+"/health")
	})
}

// getOK asks for the URL and returns an error unless the answer is 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	return nil
}
