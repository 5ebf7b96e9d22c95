// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a real Kubernetes control plane for tests and demos:
// etcd, kube-apiserver and kube-controller-manager as child processes on loopback
// ports, with real RBAC, admission, service account tokens and garbage collection.
// There are no nodes: nothing runs Pods.
//
//	test binary, demo                        folder of Options.Dir
//	+--------------------------+             +----------------------------------+
//	| Start(ctx, Options)      |  writes     | ca.crt, keys, admin.kubeconfig   |
//	|   Assets()  ----------------------+    | etcd/             data           |
//	|   leases four ports      |       |    | <program>.log     output         |
//	|   starts, waits, installs|       |    | audit.log         Options.Audit  |
//	+--------------------------+       |    +----------------------------------+
//	   |         |         |           |
//	   v         v         v           |    KUBEBUILDER_ASSETS, or the cache:
//	 etcd <-- kube-    <-- kube-       +--> etcd, kube-apiserver,
//	          apiserver    controller-      kube-controller-manager, kubectl
//	             ^         manager            ^
//	             |                            | built on first use from the
//	   operator under test,                   | module in the folder binaries
//	   with its own token                     |
//
// # Life
//
// A control plane starts in about four seconds, and ends by Stop, with the context
// of Start, or with the process that started it. On Linux the last holds however
// that process dies, because the kernel kills the children. Temporary folders that
// a killed process left behind are removed by the next Start.
//
// Many control planes may run side by side. The ports of each one are reserved as
// long as it lives, so its API server can be stopped and started again, as happens
// in every real upgrade, and never finds its port taken.
//
// # Programs
//
// KUBEBUILDER_ASSETS names a folder of ready-made programs, as with envtest.
// Without it they are built from source, which needs the Go toolchain and, for a
// first build, the Go module proxy; see Assets. The module in the folder binaries
// pins their version. It is not part of the operator's module, and neither are its
// dependencies.
package controlplane
