// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package openshifttest builds OpenShift's objects for unit tests, as the
// cluster-version operator and the machine-config operator leave them between
// two updates. A test states what is different by options; what it does not
// state is healthy and of release 4.18.1.
package openshifttest
