// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// Files that the programs read, in the folder of the control plane.
const (
	authorityFile                   = "ca.crt"
	serverCertificateFile           = "server.crt"
	serverKeyFile                   = "server.key"
	serviceAccountKeyFile           = "service-account.key"
	controllerManagerKubeconfigFile = "controller-manager.kubeconfig"
	auditPolicyFile                 = "audit-policy.yaml"
)

// writeCredentials makes the keys, certificates and kubeconfig files, and the
// administrator's client.
func (c *ControlPlane) writeCredentials() error {
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	server, err := c.authority.server()
	if err != nil {
		return err
	}
	serviceAccountKey, err := newKey()
	if err != nil {
		return err
	}
	serviceAccountPEM, err := keyutil.MarshalPrivateKeyToPEM(serviceAccountKey)
	if err != nil {
		return fmt.Errorf("encode the key of service accounts: %w", err)
	}
	for name, content := range map[string][]byte{
		authorityFile:         c.authority.bundle(),
		serverCertificateFile: server.certificate,
		serverKeyFile:         server.key,
		serviceAccountKeyFile: serviceAccountPEM,
		auditPolicyFile:       []byte(auditPolicy),
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("write the credentials of the control plane: %w", err)
		}
	}
	if err := c.writeUser(c.path(controllerManagerKubeconfigFile), "system:kube-controller-manager"); err != nil {
		return err
	}
	if err := c.writeUser(c.Kubeconfig(), "admin", "system:masters"); err != nil {
		return err
	}
	return c.loadAdmin()
}

// writeUser writes a kubeconfig file with a client certificate for the user.
func (c *ControlPlane) writeUser(path, user string, groups ...string) error {
	pair, err := c.authority.client(user, groups...)
	if err != nil {
		return err
	}
	return c.writeKubeconfig(path, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.certificate,
		ClientKeyData:         pair.key,
	})
}

func (c *ControlPlane) loadAdmin() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the administrator: %w", err)
	}
	config.QPS = -1
	c.config = config
	if c.client, err = kubernetes.NewForConfig(rest.CopyConfig(config)); err != nil {
		return fmt.Errorf("make the client of the administrator: %w", err)
	}
	return nil
}
