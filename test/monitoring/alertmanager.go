// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"
)

// alertmanagerConfig tells nobody of the alerts. All that is asked of Alertmanager here
// is which ones it knows and whether they are silenced.
const alertmanagerConfig = `route:
  receiver: nobody
  group_wait: 100ms
receivers:
- name: nobody
`

// The states of an Alert.
const (
	// AlertActive is the state of an alert that people are told of.
	AlertActive = "active"
	// AlertSuppressed is the state of an alert that is silenced.
	AlertSuppressed = "suppressed"
)

// AlertmanagerOptions say what kind of Alertmanager to start. The zero value is complete.
type AlertmanagerOptions struct {
	// Dir takes data, configuration and log. It is made if need be, has to be empty,
	// and stays. When unset, a temporary folder is used and removed by Close.
	Dir string
	// Progress is told, in lines, what takes long. Nil keeps silent.
	Progress io.Writer
}

// Alertmanager is an Alertmanager without a cluster, which notifies nobody. Its methods
// may be called from any goroutine.
type Alertmanager struct {
	*server
}

// Alert is one that Alertmanager knows.
type Alert struct {
	Labels map[string]string `json:"labels"`
	Status struct {
		// State is AlertActive, AlertSuppressed, or unprocessed for a moment.
		State string `json:"state"`
		// SilencedBy are the ids of the silences that suppress it.
		SilencedBy []string `json:"silencedBy"`
	} `json:"status"`
}

// StartAlertmanager starts an Alertmanager and returns once it is ready. It lives until
// Close is called, ctx ends, or this process dies. Call Close in any case, as it also
// waits for the end. On an error nothing is left running.
func StartAlertmanager(ctx context.Context, options AlertmanagerOptions) (*Alertmanager, error) {
	server, err := newServer(ctx, alertmanagerModule, options.Dir, options.Progress)
	if err != nil {
		return nil, err
	}
	a := &Alertmanager{server: server}
	config := a.folder.Join("alertmanager.yml")
	if err := os.WriteFile(config, []byte(alertmanagerConfig), 0o644); err != nil {
		return nil, errors.Join(fmt.Errorf("configure Alertmanager: %w", err), a.Close())
	}
	a.args = []string{
		"--config.file=" + config,
		"--storage.path=" + a.folder.Join("data"),
		"--cluster.listen-address=",
	}
	if err := a.open(ctx, options.Progress); err != nil {
		return nil, err
	}
	return a, nil
}

// Alerts returns those that Alertmanager knows, silenced ones too.
func (a *Alertmanager) Alerts(ctx context.Context) ([]Alert, error) {
	var alerts []Alert
	if err := a.call(ctx, http.MethodGet, "/api/v2/alerts", nil, &alerts); err != nil {
		return nil, fmt.Errorf("list the alerts of Alertmanager: %w", err)
	}
	return alerts, nil
}

// AwaitState returns once Alertmanager knows alerts of the name and all of them have the
// state, AlertActive or AlertSuppressed.
func (a *Alertmanager) AwaitState(ctx context.Context, alert, state string) error {
	err := await(ctx, func(ctx context.Context) error {
		alerts, err := a.Alerts(ctx)
		if err != nil {
			return err
		}
		found := slices.DeleteFunc(alerts, func(one Alert) bool { return one.Labels["alertname"] != alert })
		if len(found) == 0 {
			return errors.New("it is not known")
		}
		for _, one := range found {
			if one.Status.State != state {
				return fmt.Errorf("it is %s", one.Status.State)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for alert %s to be %s: %w", alert, state, err)
	}
	return nil
}

// Silence suppresses the alerts whose labels have all these values, from now on. It
// returns the id of the silence.
func (a *Alertmanager) Silence(ctx context.Context, matchers map[string]string, until time.Time) (id string, err error) {
	type matcher struct {
		Name    string `json:"name"`
		Value   string `json:"value"`
		IsRegex bool   `json:"isRegex"`
		IsEqual bool   `json:"isEqual"`
	}
	list := []matcher{}
	for _, name := range slices.Sorted(maps.Keys(matchers)) {
		list = append(list, matcher{Name: name, Value: matchers[name], IsEqual: true})
	}
	silence := map[string]any{
		"matchers":  list,
		"startsAt":  time.Now(),
		"endsAt":    until,
		"createdBy": "test",
		"comment":   "A test silences this.",
	}
	var created struct {
		SilenceID string `json:"silenceID"`
	}
	if err := a.call(ctx, http.MethodPost, "/api/v2/silences", silence, &created); err != nil {
		return "", fmt.Errorf("silence %v: %w", matchers, err)
	}
	return created.SilenceID, nil
}

// Expire ends a silence.
func (a *Alertmanager) Expire(ctx context.Context, id string) error {
	if err := a.call(ctx, http.MethodDelete, "/api/v2/silence/"+url.PathEscape(id), nil, nil); err != nil {
		return fmt.Errorf("expire silence %s: %w", id, err)
	}
	return nil
}

// call sends a request with a body, unless it is nil, and decodes the answer, if wanted.
func (a *Alertmanager) call(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader = http.NoBody
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(data)
	}
	response, err := a.do(ctx, method, path, content)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
