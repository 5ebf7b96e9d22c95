// SPDX-FileCopyrightText: The managed-upgrade-operator authors
// SPDX-License-Identifier: Apache-2.0

// Command binaries is etcd, kube-apiserver, kube-controller-manager and kubectl
// in one program. It plays the part of the name it was called with, so one link
// step and four symbolic links give the folder that a Kubernetes control plane
// for tests needs.
//
// It is a module of its own, so that none of its dependencies reach the go.mod
// of the operator.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // CronJobs name time zones, and the host may have no tzdata

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl reads any user's kubeconfig
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kubectl":
		runKubectl()
	default:
		fmt.Fprintf(os.Stderr,
			"%s: call this program by one of the names etcd, kube-apiserver, kube-controller-manager, kubectl\n", name)
		os.Exit(2)
	}
}

// runKubectl applies -v before the command is built, because kubectl already
// logs while it looks for plugins and reads its own configuration.
func runKubectl() {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintf(os.Stderr, "kubectl: set log verbosity: %v\n", err)
		os.Exit(1)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
