// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName is the name of the one cluster, user and context of a kubeconfig.
const kubeconfigName = "controlplane"

// KubeconfigOption changes what a kubeconfig file says.
type KubeconfigOption func(*clientcmdapi.Config)

// ThroughServer points a kubeconfig at another server than the API server, such
// as a proxy that injects faults. caData is the PEM of the authority that the
// client has to trust; it stays the control plane's when empty.
func ThroughServer(url string, caData []byte) KubeconfigOption {
	return func(config *clientcmdapi.Config) {
		cluster := config.Clusters[kubeconfigName]
		cluster.Server = url
		if len(caData) > 0 {
			cluster.CertificateAuthorityData = caData
		}
	}
}

// InNamespace sets the namespace of a kubeconfig's context. It is default otherwise.
func InNamespace(namespace string) KubeconfigOption {
	return func(config *clientcmdapi.Config) {
		config.Contexts[kubeconfigName].Namespace = namespace
	}
}

// WriteKubeconfig writes a kubeconfig file whose user is the owner of the bearer
// token. An existing file is overwritten; only its owner may read it.
func (c *ControlPlane) WriteKubeconfig(path, token string, options ...KubeconfigOption) error {
	return c.writeKubeconfig(path, &clientcmdapi.AuthInfo{Token: token}, options...)
}

func (c *ControlPlane) writeKubeconfig(path string, user *clientcmdapi.AuthInfo, options ...KubeconfigOption) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[kubeconfigName] = &clientcmdapi.Cluster{
		Server:                   c.url(),
		CertificateAuthorityData: c.authority.Bundle(),
	}
	config.AuthInfos[kubeconfigName] = user
	config.Contexts[kubeconfigName] = &clientcmdapi.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName}
	config.CurrentContext = kubeconfigName
	for _, option := range options {
		option(config)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
