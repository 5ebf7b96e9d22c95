// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package receiver is a webhook that takes CloudEvents, for tests and the demo:
// a real HTTP server on a loopback port, which can also misbehave.
//
//	r, err := receiver.Start(receiver.Options{TLS: true, Headers: map[string]string{"Authorization": "Bearer x"}})
//	...                                  // events are sent to r.URL(), by whoever trusts r.CA()
//	r.FailWith(503, 2)                   // the next two requests fail
//	err = r.AwaitEvents(ctx, func(events []receiver.Received) error { ... })
//
// What becomes of a request:
//
//	no POST                                  405
//	a header of Options.Headers is missing   401
//	no valid CloudEvent                      400
//	a fault                                  as FailWith, Hang, RedirectTo and CloseConnections say
//	otherwise                                204, and the event is accepted
//
// So a fault meets only requests that were accepted without it.
package receiver
