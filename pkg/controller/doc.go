// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package controller connects the kinds of the API with the packages that know
// what to do: each reconciler reads its object, gathers what a decision needs,
// asks for the decision, carries it out, and writes the status once.
package controller
