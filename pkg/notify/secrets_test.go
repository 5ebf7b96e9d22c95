// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
)

// vault has Secrets, counts how often they are read, and fails with err.
type vault struct {
	client.WithWatch
	reads int
	err   error
}

func newVault(objects ...client.Object) *vault {
	v := &vault{}
	v.WithWatch = interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if v.reads++; v.err != nil {
				return v.err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	return v
}

func newSecret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func ofType(kind corev1.SecretType, s *corev1.Secret) *corev1.Secret {
	s.Type = kind
	return s
}

// secretReceiver has all that it needs in Secrets.
func secretReceiver() *v1beta1.NotificationReceiver {
	return &v1beta1.NotificationReceiver{
		URLFrom:     &v1beta1.SecretKey{Name: "chat", Key: "url"},
		CAFrom:      &v1beta1.SecretKey{Name: "chat", Key: "ca.crt"},
		HeadersFrom: &v1beta1.SecretName{Name: "chat-headers"},
	}
}

func TestTarget(t *testing.T) {
	chat := map[string]string{"url": "https://" + marker, "ca.crt": "PEM", "other": marker}
	headers := newSecret("chat-headers", map[string]string{"Authorization": "Bearer " + marker})
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "chat", errors.New(marker))
	for _, tc := range []struct {
		reason   string
		receiver *v1beta1.NotificationReceiver
		objects  []client.Object
		err      error
		want     Target
		failure  string
	}{
		{reason: "no Secret", receiver: &v1beta1.NotificationReceiver{URL: "https://example.com"}, want: Target{URL: "https://example.com"}},
		{
			reason: "all from Secrets", receiver: secretReceiver(), objects: []client.Object{newSecret("chat", chat), headers},
			want: Target{URL: "https://" + marker, CA: []byte("PEM"), Headers: map[string]string{"Authorization": "Bearer " + marker}},
		},
		{
			reason: "no headers in the Secret", receiver: &v1beta1.NotificationReceiver{URL: "http://x", HeadersFrom: &v1beta1.SecretName{Name: "empty"}},
			objects: []client.Object{newSecret("empty", nil)}, want: Target{URL: "http://x", Headers: map[string]string{}},
		},
		{reason: "the Secret is missing", receiver: secretReceiver(), failure: "there is no Secret chat"},
		{reason: "the Secret of the headers is missing", receiver: secretReceiver(), objects: []client.Object{newSecret("chat", chat)}, failure: "there is no Secret chat-headers"},
		{
			reason: "the Secret of another namespace", receiver: secretReceiver(), failure: "there is no Secret chat",
			objects: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "chat"}}},
		},
		{reason: "the key is missing", receiver: secretReceiver(), objects: []client.Object{newSecret("chat", map[string]string{"ca.crt": marker})}, failure: "Secret chat has no key url"},
		{
			reason: "an empty CA is not that of the system", receiver: secretReceiver(), failure: "the key ca.crt of Secret chat is empty",
			objects: []client.Object{newSecret("chat", map[string]string{"url": marker, "ca.crt": ""})},
		},
		{reason: "not allowed", receiver: secretReceiver(), err: forbidden, failure: "the operator may not read Secret chat"},
		{reason: "the API server fails", receiver: secretReceiver(), err: apierrors.NewInternalError(errors.New(marker)), failure: "Secret chat cannot be read: InternalError"},
		{reason: "the API server is away", receiver: secretReceiver(), err: errors.New("dial tcp 127.0.0.1: " + marker), failure: "Secret chat cannot be read"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v := newVault(tc.objects...)
			v.err = tc.err
			got, err := NewSecrets(v, clocktesting.NewFakePassiveClock(now)).Target(t.Context(), "upgrades", tc.receiver)
			if tc.failure != "" {
				expectFailure(t, err, tc.failure)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

// The operator's own credentials must not get to whoever may only name a Secret of their namespace.
func TestCredentialsAreNotSent(t *testing.T) {
	credentials := map[string]string{"url": "https://" + marker, "ca.crt": "PEM", "tls.key": marker, "token": marker}
	by := map[string]*v1beta1.NotificationReceiver{
		"urlFrom":     {URLFrom: &v1beta1.SecretKey{Name: "chat", Key: "url"}},
		"headersFrom": {URL: "https://example.com", HeadersFrom: &v1beta1.SecretName{Name: "chat"}},
	}
	for _, kind := range []corev1.SecretType{
		corev1.SecretTypeTLS, corev1.SecretTypeServiceAccountToken, corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson,
	} {
		v := newVault(ofType(kind, newSecret("chat", credentials)))
		s := NewSecrets(v, clocktesting.NewFakePassiveClock(now))
		for from, receiver := range by {
			t.Run(string(kind)+" by "+from, func(t *testing.T) {
				target, err := s.Target(t.Context(), "upgrades", receiver)
				expectFailure(t, err, "Secret chat has the type "+string(kind)+", which is not sent to receivers: use one of type Opaque")
				if diff := cmp.Diff(Target{}, target); diff != "" {
					t.Errorf("target (-want +got):\n%s", diff)
				}
			})
		}
		// A CA is compared with, and not sent. That of OpenShift's own services is in Secrets like these.
		target, err := s.Target(t.Context(), "upgrades", &v1beta1.NotificationReceiver{URL: "https://x", CAFrom: &v1beta1.SecretKey{Name: "chat", Key: "ca.crt"}})
		if err != nil || string(target.CA) != "PEM" {
			t.Errorf("%s by caFrom: got %q, error %v", kind, target.CA, err)
		}
	}
}

func TestOtherTypesAreSent(t *testing.T) {
	for _, kind := range []corev1.SecretType{"", corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth, "example.com/webhook"} {
		v := newVault(ofType(kind, newSecret("chat", map[string]string{"url": "https://a"})))
		receiver := &v1beta1.NotificationReceiver{URLFrom: &v1beta1.SecretKey{Name: "chat", Key: "url"}, HeadersFrom: &v1beta1.SecretName{Name: "chat"}}
		got, err := NewSecrets(v, clocktesting.NewFakePassiveClock(now)).Target(t.Context(), "upgrades", receiver)
		if err != nil || got.URL != "https://a" || got.Headers["url"] != "https://a" {
			t.Errorf("%q: got %+v, error %v", kind, got, err)
		}
	}
}

// The type of a Secret cannot be changed: it is made anew, and the receiver must not wait for what was read of the first one.
func TestSecretIsMadeAnewWithAnotherType(t *testing.T) {
	v := newVault(ofType(corev1.SecretTypeTLS, newSecret("chat", map[string]string{"url": "https://a"})))
	s := NewSecrets(v, clocktesting.NewFakePassiveClock(now))
	receiver := &v1beta1.NotificationReceiver{URLFrom: &v1beta1.SecretKey{Name: "chat", Key: "url"}}
	if _, err := s.Target(t.Context(), "upgrades", receiver); err == nil {
		t.Fatal("there is no error, want one: the Secret is a certificate")
	}
	if err := errors.Join(v.Delete(t.Context(), newSecret("chat", nil)), v.Create(t.Context(), newSecret("chat", map[string]string{"url": "https://b"}))); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Target(t.Context(), "upgrades", receiver); err != nil || got.URL != "https://b" {
		t.Errorf("got %q, error %v", got.URL, err)
	}
}

func TestSecretsAreReadOnceAMinute(t *testing.T) {
	v := newVault(newSecret("chat", map[string]string{"url": "https://a", "ca.crt": "PEM"}), newSecret("chat-headers", nil))
	clk := clocktesting.NewFakePassiveClock(now)
	s := NewSecrets(v, clk)
	receiver := secretReceiver()
	expect := func(what, url string, reads int) {
		t.Helper()
		got, err := s.Target(t.Context(), "upgrades", receiver)
		if err != nil || got.URL != url || v.reads != reads {
			t.Errorf("%s: URL %q, error %v, %d reads, want %q after %d", what, got.URL, err, v.reads, url, reads)
		}
	}
	expect("the first time", "https://a", 2)
	changed := newSecret("chat", map[string]string{"url": "https://b", "ca.crt": "PEM"})
	if err := v.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	clk.SetTime(now.Add(59 * time.Second))
	expect("within a minute", "https://a", 2)
	s.Forget("upgrades", receiver)
	expect("after it was forgotten", "https://b", 4)
	clk.SetTime(now.Add(2 * time.Minute))
	expect("after a minute", "https://b", 6)
	clk.SetTime(now)
	expect("after the clock was set back", "https://b", 8)
	if err := v.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	s.Forget("upgrades", receiver)
	for range 2 {
		if _, err := s.Target(t.Context(), "upgrades", receiver); err == nil {
			t.Error("there is no error, want one: the Secret is gone")
		}
	}
	if v.reads != 10 {
		t.Errorf("there were %d reads, want 10: what is missing is looked for each time", v.reads)
	}
	if err := v.Create(t.Context(), newSecret("chat", map[string]string{"url": "https://c", "ca.crt": "PEM"})); err != nil {
		t.Fatal(err)
	}
	expect("once it is there", "https://c", 12)
}

func TestSecretsAreDropped(t *testing.T) {
	v := newVault(newSecret("chat", map[string]string{"url": "x", "ca.crt": "PEM"}), newSecret("chat-headers", nil), newSecret("other", map[string]string{"url": "y"}))
	clk := clocktesting.NewFakePassiveClock(now)
	s := NewSecrets(v, clk)
	if _, err := s.Target(t.Context(), "upgrades", secretReceiver()); err != nil {
		t.Fatal(err)
	}
	clk.SetTime(now.Add(2 * time.Minute))
	if _, err := s.Target(t.Context(), "upgrades", &v1beta1.NotificationReceiver{URLFrom: &v1beta1.SecretKey{Name: "other", Key: "url"}}); err != nil {
		t.Fatal(err)
	}
	if len(s.known) != 1 {
		t.Errorf("%d Secrets are in memory, want the one in use", len(s.known))
	}
}

func TestTargetToldToStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := newVault()
	v.err = context.Canceled
	_, err := NewSecrets(v, clocktesting.NewFakePassiveClock(now)).Target(ctx, "upgrades", secretReceiver())
	var failure *Failure
	if !errors.Is(err, context.Canceled) || errors.As(err, &failure) {
		t.Errorf("got error %v (%T), want that of the context", err, err)
	}
}
