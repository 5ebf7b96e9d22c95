// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/poll"
)

// SecretInterval is how long what was read of a Secret stands.
const SecretInterval = time.Minute

// Secrets find out where and how to reach receivers. They read a Secret once in SecretInterval, and only while there is
// something to deliver. They may be used from several goroutines.
type Secrets struct {
	reader client.Reader
	clock  clock.PassiveClock

	mutex sync.Mutex // of what follows
	known map[client.ObjectKey]*secret
}

type secret struct {
	poll.Question[content]
	lastUsed time.Time
}

// content is what is used of a Secret.
type content struct {
	kind corev1.SecretType
	data map[string][]byte
}

// NewSecrets returns Secrets that read through reader, which should not keep what it reads.
func NewSecrets(reader client.Reader, clk clock.PassiveClock) *Secrets {
	return &Secrets{reader: reader, clock: clk, known: map[client.ObjectKey]*secret{}}
}

// Target returns where and how to reach the receiver of a job in that namespace. Every error is a *Failure, but for that
// of a context that has ended.
func (s *Secrets) Target(ctx context.Context, namespace string, r *v1beta1.NotificationReceiver) (Target, error) {
	target := Target{URL: r.URL}
	if r.URLFrom != nil {
		key := client.ObjectKey{Namespace: namespace, Name: r.URLFrom.Name}
		data, err := s.toSend(ctx, key)
		if err != nil {
			return Target{}, err
		}
		url, err := s.value(data, key, r.URLFrom.Key)
		if err != nil {
			return Target{}, err
		}
		target.URL = string(url)
	}
	if r.CAFrom != nil {
		key := client.ObjectKey{Namespace: namespace, Name: r.CAFrom.Name}
		found, err := s.get(ctx, key)
		if err != nil {
			return Target{}, err
		}
		if target.CA, err = s.value(found.data, key, r.CAFrom.Key); err != nil {
			return Target{}, err
		}
	}
	if r.HeadersFrom != nil {
		headers, err := s.toSend(ctx, client.ObjectKey{Namespace: namespace, Name: r.HeadersFrom.Name})
		if err != nil {
			return Target{}, err
		}
		target.Headers = make(map[string]string, len(headers))
		for name, value := range headers {
			target.Headers[name] = string(value)
		}
	}
	return target, nil
}

// Forget makes the next Target read the Secrets of the receiver anew.
func (s *Secrets) Forget(namespace string, r *v1beta1.NotificationReceiver) {
	for _, from := range []*v1beta1.SecretKey{r.URLFrom, r.CAFrom} {
		if from != nil {
			s.forget(client.ObjectKey{Namespace: namespace, Name: from.Name})
		}
	}
	if r.HeadersFrom != nil {
		s.forget(client.ObjectKey{Namespace: namespace, Name: r.HeadersFrom.Name})
	}
}

// toSend returns the data of a Secret that a receiver gets to see. Whoever names the Secret and the receiver need not be allowed to read
// Secrets, so those are refused that OpenShift itself puts beside the operator: the key that it serves metrics with, and tokens of its account.
func (s *Secrets) toSend(ctx context.Context, key client.ObjectKey) (map[string][]byte, error) {
	found, err := s.get(ctx, key)
	if err != nil {
		return nil, err
	}
	switch found.kind {
	case corev1.SecretTypeTLS, corev1.SecretTypeServiceAccountToken, corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson:
		s.forget(key)
		return nil, failf("Secret %s has the type %s, which is not sent to receivers: use one of type %s", key.Name, found.kind, corev1.SecretTypeOpaque)
	}
	return found.data, nil
}

// value returns what a key of the Secret has.
func (s *Secrets) value(data map[string][]byte, from client.ObjectKey, key string) ([]byte, error) {
	if value := data[key]; len(value) > 0 {
		return value, nil
	}
	s.forget(from)
	if _, ok := data[key]; ok {
		return nil, failf("the key %s of Secret %s is empty", key, from.Name)
	}
	return nil, failf("Secret %s has no key %s", from.Name, key)
}

func (s *Secrets) get(ctx context.Context, key client.ObjectKey) (content, error) {
	now := s.clock.Now()
	known, err := s.use(key, now).Get(ctx, now, SecretInterval, func(ctx context.Context) (content, error) {
		found := &corev1.Secret{}
		err := s.reader.Get(ctx, key, found)
		return content{found.Type, found.Data}, err
	})
	if err == nil {
		return known, nil
	}
	s.forget(key) // it may be there the next time: the backoff of the receiver spares requests
	if ctx.Err() != nil {
		return content{}, fmt.Errorf("get Secret %s: %w", key, err)
	}
	switch reason := apierrors.ReasonForError(err); {
	case apierrors.IsNotFound(err):
		return content{}, failf("there is no Secret %s", key.Name)
	case apierrors.IsForbidden(err):
		return content{}, failf("the operator may not read Secret %s", key.Name)
	case reason != "":
		return content{}, failf("Secret %s cannot be read: %s", key.Name, reason)
	default:
		return content{}, failf("Secret %s cannot be read", key.Name)
	}
}

// use returns what is known of a Secret, and drops what nobody has wanted to know for long.
func (s *Secrets) use(key client.ObjectKey, now time.Time) *secret {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for other, known := range s.known {
		if now.Sub(known.lastUsed).Abs() > SecretInterval {
			delete(s.known, other)
		}
	}
	known, ok := s.known[key]
	if !ok {
		known = &secret{}
		s.known[key] = known
	}
	known.lastUsed = now
	return known
}

func (s *Secrets) forget(key client.ObjectKey) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.known, key)
}
