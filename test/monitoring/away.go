// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"net/http"
)

// Away is how something is away.
type Away string

// The ways to be away.
const (
	// AwayRefused refuses connections.
	AwayRefused Away = "refused"
	// AwayUnavailable answers with status 503.
	AwayUnavailable Away = "unavailable"
	// AwayHangs answers nothing at all.
	AwayHangs Away = "hangs"
)

// GoAway has what is behind the gateway be away until back is called, which may be done
// more than once. An answer that SetAnswer has chosen before is forgotten.
func (g *Gateway) GoAway(ctx context.Context, how Away) (back func() error, err error) {
	switch how {
	case AwayRefused:
		if err := g.Stop(); err != nil {
			return nil, err
		}
		return func() error {
			if g.listens() {
				return nil
			}
			return g.Start(ctx)
		}, nil
	case AwayUnavailable:
		g.SetAnswer(AnswerStatus(http.StatusServiceUnavailable))
	case AwayHangs:
		g.SetAnswer(Hang())
	default:
		return nil, fmt.Errorf("go away: %q is no way to be away", how)
	}
	return func() error { g.SetAnswer(nil); return nil }, nil
}

// listens reports whether the gateway is not stopped.
func (g *Gateway) listens() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server != nil
}
