// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// tokenLifetimeSeconds, one day, outlives any test or demo.
const tokenLifetimeSeconds = 24 * 60 * 60

// ServiceAccountToken returns a new bearer token of the existing service account,
// valid for a day. With WriteKubeconfig, a program can run with exactly the rights
// that its own RBAC rules give it.
func (c *ControlPlane) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenLifetimeSeconds)},
	}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of the service account %s/%s: %w", namespace, name, err)
	}
	return answer.Status.Token, nil
}
