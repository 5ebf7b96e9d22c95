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

	"github.com/appuio/managed-upgrade-operator/test/certificates"
)

// Files that the programs read, in the folder of the control plane.
const (
	authorityFile                   = "ca.crt"
	serverCertificateFile           = "server.crt"
	serverKeyFile                   = "server.Key"
	serviceAccountKeyFile           = "service-account.key"
	controllerManagerKubeconfigFile = "controller-manager.kubeconfig"
	auditPolicyFile                 = "audit-policy.yaml"
)

// writeCredentials makes the keys, certificates and kubeconfig files, and the
// administrator's client.
func (c *ControlPlane) writeCredentials() error {
	var err error
	if c.authority, err = certificates.NewAuthority("controlplane-ca"); err != nil {
		return err
	}
	server, err := newServerCertificate(c.authority)
	if err != nil {
		return err
	}
	serviceAccountKey, err := certificates.NewKey()
	if err != nil {
		return err
	}
	serviceAccountPEM, err := keyutil.MarshalPrivateKeyToPEM(serviceAccountKey)
	if err != nil {
		return fmt.Errorf("encode the key of service accounts: %w", err)
	}
	for name, content := range map[string][]byte{
		authorityFile:         c.authority.Bundle(),
		serverCertificateFile: server.Certificate,
		serverKeyFile:         server.Key,
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
	pair, err := newClientCertificate(c.authority, user, groups...)
	if err != nil {
		return err
	}
	return c.writeKubeconfig(path, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.Certificate,
		ClientKeyData:         pair.Key,
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
