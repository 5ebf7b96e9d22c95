// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Package sim simulates an OpenShift cluster on any Kubernetes API server.
//
// It plays the cluster-version operator (CVO), the cluster operators, the
// machine-config operator (MCO) and the kubelets, as far as an observer of the
// API can tell them from the real ones: it watches ClusterVersion/version and
// the MachineConfigPools, and writes the status that real clusters write, in
// the same order. Nothing runs on its nodes and no image is pulled.
//
// The pods of batch Jobs seem to run: how they end is told by their annotations
// (AnnotationOutcome and others), and what they were started with stands in an
// annotation afterwards (RanIn). So do other pods that ask for it (AnnotationRun).
// Drains evict pods by the API, and deleted pods end in their own time
// (AnnotationTerminatesAfter, AnnotationStuckTerminating).
//
// Scenario.MachineAPI adds the controllers of MachineSets and Machines, and
// Scenario.FileIntegrity the File Integrity Operator. StartUpdateService serves the
// scenario's update graph.
//
// Install prepares the API server (CRDs and objects of a cluster with a
// completed installation), Run plays the controllers until its context ends,
// and Update changes the Scenario while it runs. The scenario is kept in the
// ConfigMap openshift-simulator/scenario, so kubectl edit works too. All state
// is derived from the API objects: Run may be stopped at any moment and
// started again; only a phase that was being timed starts its time again.
//
// The simulator owns the status of the objects that it plays. A fault is made
// by the scenario, never by editing such a status: it would be written back.
package sim
