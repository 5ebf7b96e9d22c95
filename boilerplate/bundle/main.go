package main

import (
	_ "github.com/operator-framework/api/pkg/operators/v1alpha1"
	_ "github.com/operator-framework/api/pkg/operators/v2"
	_ "k8s.io/cli-runtime/pkg/printers"
	_ "sigs.k8s.io/kustomize/api/krusty"
	_ "sigs.k8s.io/kustomize/kyaml/filesys"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "k8s.io/apiserver/pkg/authentication/authenticator"
	_ "sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	_ "golang.org/x/term"
	_ "golang.org/x/net/html"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "github.com/prometheus/client_model/go"
)

func main() {}
