// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package steps holds the parts that an upgrade is made of, and the runner that
// goes through them.
//
// No position is stored: each pass begins with the first step, and each step asks
// the cluster whether it is done already. A step that is done costs a look at the
// cache. So a step may find itself run again at any time: after a crash, with a
// cache that lags, after the API server was away.
package steps
