// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/appuio/managed-upgrade-operator/api/v1beta1"
	"github.com/appuio/managed-upgrade-operator/pkg/notify"
	"github.com/appuio/managed-upgrade-operator/test/environment"
	"github.com/appuio/managed-upgrade-operator/test/receiver"
)

// hookSample is the UpgradeJobHook of the demo.
//
//go:embed testdata/upgradejobhook.yaml
var hookSample []byte

const (
	hookSamplePath = "test/demo/testdata/upgradejobhook.yaml"
	// webhookSecret has the URL, the authority and the header of the receiver, as the config of the demo says.
	webhookSecret        = "webhook"
	webhookHeadersSecret = "webhook-headers"
	// lastWordsTake is how long the receiver waits for the news of the end.
	lastWordsTake = 10 * time.Second
)

// audience is who is told of the upgrade, and who has a say in it.
type audience struct {
	receiver *receiver.Receiver
	// heard is how many events were shown.
	heard int
}

// invite starts the receiver of notifications, and applies the hook.
func (d *demo) invite(ctx context.Context) error {
	header := map[string]string{"Authorization": "Bearer of-the-demo"}
	var err error
	if d.audience.receiver, err = receiver.Start(receiver.Options{TLS: true, Headers: header}); err != nil {
		return err
	}
	r := d.audience.receiver
	for name, data := range map[string]map[string]string{
		webhookSecret:        {"url": r.URL() + "/events", "ca.crt": string(r.CA())},
		webhookHeadersSecret: header,
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: environment.Namespace, Name: name}, StringData: data}
		if err := d.env.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("create Secret %s: %w", name, err)
		}
	}
	d.say("demo", plain, "a webhook listens at "+r.URL()+"; the operator finds it, and the header that it asks for, in Secrets")

	hook := &v1beta1.UpgradeJobHook{}
	if err := yaml.UnmarshalStrict(hookSample, hook); err != nil {
		return fmt.Errorf("read %s: %w", hookSamplePath, err)
	}
	hook.Namespace = environment.Namespace
	if err := d.env.Client.Create(ctx, hook); err != nil {
		return fmt.Errorf("create UpgradeJobHook %s: %w", hook.Name, err)
	}
	d.say("demo", plain, fmt.Sprintf("applied UpgradeJobHook %s of %s", hook.Name, hookSamplePath))
	return nil
}

// hear shows the events that the receiver got since it was called last.
func (d *demo) hear() {
	events := d.audience.receiver.Events()
	for _, e := range events[d.audience.heard:] {
		var data notify.Data
		text := e.Event.Type()
		if err := e.Event.DataAs(&data); err == nil && data.Condition != "" {
			text += " " + data.Condition
		}
		if data.Reason != "" {
			text += " (" + data.Reason + ")"
		}
		d.say("webhook", dim, text)
	}
	d.audience.heard = len(events)
}

// hearOut waits until the receiver has heard of the end.
func (d *demo) hearOut(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastWordsTake)
	defer cancel()
	err := d.audience.receiver.AwaitEvents(ctx, func(events []receiver.Received) error {
		for _, e := range events {
			if e.Event.Type() == v1beta1.NotificationTypePrefix+string(v1beta1.NotificationJobSucceeded) {
				return nil
			}
		}
		return fmt.Errorf("the webhook was not told that the job has succeeded")
	})
	d.hear()
	return err
}
