// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
)

func TestNotificationsUseSecrets(t *testing.T) {
	hook := newWebhook(t)
	receiver := v1beta1.NotificationReceiver{Name: "chat", URLFrom: &v1beta1.SecretKey{Name: "chat", Key: "url"}}
	o := newOffice(t, newReceivedJob(receiver))
	r := o.notifications()
	o.happens(jobStarted)
	o.expectResult("no Secret", o.tell(r, "chat"), time.Second)
	o.expectStatus("chat", "0 0 1 0 there is no Secret chat")

	secret := newSecret("chat", map[string]string{"ca.crt": "x"})
	if err := o.store.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.elapse(time.Second)
	o.expectResult("no key", o.tell(r, "chat"), 2*time.Second)
	o.expectStatus("chat", "0 0 1 0 Secret chat has no key url")

	secret.Data["url"] = []byte(hook.URL + "/" + secretMarker + "\n")
	if err := o.store.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	o.elapse(2 * time.Second)
	o.expectResult("all there", o.tell(r, "chat"), 0)
	o.expectStatus("chat", "1 1 0 0")
	o.happens(stepStarted)
	o.tell(r, "chat")
	if o.reads != 3 {
		t.Errorf("the Secret was read %d times, want once for each attempt that failed and once a minute", o.reads)
	}

	hook.fails(http.StatusUnauthorized)
	o.happens(stepCompleted)
	o.expectResult("denied", o.tell(r, "chat"), time.Second)
	hook.fails(0)
	o.elapse(time.Second)
	o.tell(r, "chat")
	if o.reads != 4 {
		t.Errorf("the Secret was read %d times, want 4: the receiver did not accept what was read before", o.reads)
	}
	o.expectStatus("chat", "3 3 0 0")
	o.happens(stepCompleted)
	o.elapse(10 * time.Minute)
	o.tell(r, "chat")
	if o.reads != 5 {
		t.Errorf("the Secret was read %d times, want 5: it may have changed", o.reads)
	}
}

// Whoever names a Secret gets to see it, so the operator does not send its own credentials, and says so.
func TestNotificationsRefuseCredentials(t *testing.T) {
	hook := newWebhook(t)
	secret := newSecret("serving-cert", map[string]string{"url": hook.URL, "tls.key": secretMarker})
	secret.Type = corev1.SecretTypeTLS
	o := newOffice(t, newReceivedJob(v1beta1.NotificationReceiver{Name: "chat", URLFrom: &v1beta1.SecretKey{Name: "serving-cert", Key: "url"}}), secret)
	r := o.notifications()
	o.happens(jobStarted)
	o.tell(r, "chat")
	o.expectStatus("chat", "0 0 1 0 Secret serving-cert has the type kubernetes.io/tls, which is not sent to receivers: use one of type Opaque")
}

// Nothing that is secret gets into the log or into the status, whatever goes wrong.
func TestNotificationsKeepSecrets(t *testing.T) {
	hook := newWebhook(t)
	secret := newSecret("chat", map[string]string{
		"away":     "http://127.0.0.1:1/" + secretMarker,
		"answer":   hook.URL + "/" + secretMarker + "?token=" + secretMarker,
		"password": "https://user:" + secretMarker + "@127.0.0.1:1/",
		"nonsense": "https://127.0.0.1:1/%zz" + secretMarker,
		"scheme":   secretMarker + "://127.0.0.1:1",
	})
	headers := newSecret("headers", map[string]string{"Authorization": "Bearer " + secretMarker, "X-Bad": secretMarker + "\n" + secretMarker})
	hook.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Reason", secretMarker)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(secretMarker))
	}
	var receivers []v1beta1.NotificationReceiver
	for key := range secret.Data {
		from := &v1beta1.SecretKey{Name: "chat", Key: key}
		receivers = append(receivers, v1beta1.NotificationReceiver{Name: key, URLFrom: from})
	}
	receivers = append(receivers,
		v1beta1.NotificationReceiver{Name: "plain", URL: hook.URL, HeadersFrom: &v1beta1.SecretName{Name: "headers"}},
		v1beta1.NotificationReceiver{Name: "header", URL: "https://127.0.0.1:1", HeadersFrom: &v1beta1.SecretName{Name: "headers"}},
		v1beta1.NotificationReceiver{Name: "ca", URL: "https://127.0.0.1:1", CAFrom: &v1beta1.SecretKey{Name: "chat", Key: "away"}},
	)
	o := newOffice(t, newReceivedJob(receivers...), secret, headers)
	r := o.notifications()
	o.happens(jobStarted)
	for _, receiver := range receivers {
		o.tell(r, receiver.Name)
		if s := notify.ReceiverStatus(o.job(), receiver.Name); s.LastError == "" || s.Delivered != 0 {
			t.Errorf("receiver %s has status %+v, want an error", receiver.Name, s)
		}
	}
	data, err := json.Marshal(o.job().Status)
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"status": string(data), "log": o.logged.String()} {
		if strings.Contains(text, secretMarker) || strings.Contains(text, "127.0.0.1") {
			t.Errorf("there is a secret in the %s:\n%s", where, text)
		}
	}
	if got := strings.Count(o.logged.String(), "could not be delivered"); got != len(receivers) {
		t.Errorf("%d failures are in the log, want %d:\n%s", got, len(receivers), o.logged.String())
	}
}
