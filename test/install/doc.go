// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests deploy/ on a real API server, with the kubectl of its version, as an administrator installs it: what is applied, what
// the pods may be, what the policies refuse, who may do what, what must-gather collects, and what the pages about installing say.
// The API server has OpenShift's kinds and namespaces, but no OpenShift: nothing schedules pods or makes certificates.
package install
