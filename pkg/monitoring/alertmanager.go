// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/common/model"
)

// errNoAlertmanager is for questions to an Alertmanager that there is not.
var errNoAlertmanager error = failure{"no Alertmanager is configured (--alertmanager-url)", true}

// HasAlertmanager tells whether an Alertmanager is configured, so that silences can be asked for, and made.
func (c *Client) HasAlertmanager() bool { return c != nil && c.alertmanager != nil }

// SilencedAlerts returns the labels of the critical alerts that are silenced in Alertmanager, as of at most maxAge before
// now. It is Alertmanager that says which ones are: silences may match labels that it alone gets to see. The answer must
// not be changed.
func (c *Client) SilencedAlerts(ctx context.Context, now time.Time, maxAge time.Duration) ([]model.LabelSet, error) {
	if !c.HasAlertmanager() {
		return nil, errNoAlertmanager
	}
	c.mutex.Lock()
	silenced := c.silenced
	c.mutex.Unlock()
	return silenced.Get(ctx, now, maxAge, c.askSilenced)
}

// alert is what is read of an alert of Alertmanager's API v2.
type alert struct {
	Labels model.LabelSet `json:"labels"`
	Status *struct {
		SilencedBy []string `json:"silencedBy"`
	} `json:"status"`
}

func (c *Client) askSilenced(ctx context.Context) ([]model.LabelSet, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	u := c.alertmanager.URL("/api/v2/alerts", nil)
	parameters := u.Query()
	parameters.Set("active", "false") // an alert that is inhibited too is silenced all the same
	parameters.Set("filter", `severity="critical"`)
	u.RawQuery = parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask Alertmanager: %w", err)
	}
	response, body, err := c.alertmanager.Do(ctx, request) //nolint:bodyclose // the client has read and closed it
	if err == nil && response.StatusCode != http.StatusOK {
		err = statusError(response.StatusCode)
	}
	if err != nil {
		return nil, explain("Alertmanager", err)
	}
	var alerts []alert
	if err := json.Unmarshal(body, &alerts); err != nil {
		return nil, failure{"the answer of Alertmanager cannot be read: " + err.Error(), false}
	}
	var silenced []model.LabelSet
	for _, a := range alerts {
		if a.Status != nil && len(a.Status.SilencedBy) > 0 {
			silenced = append(silenced, a.Labels)
		}
	}
	return silenced, nil
}
