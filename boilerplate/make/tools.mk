# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# Developer tools. `go tool` builds them at the versions of boilerplate/tools/go.mod
# and keeps the binaries in Go's build cache, so nothing has to be installed and the
# operator's own go.mod stays free of their dependencies.

GO_TOOL := go tool -modfile=$(CURDIR)/boilerplate/tools/go.mod

CONTROLLER_GEN := $(GO_TOOL) controller-gen
CRD_REF_DOCS := $(GO_TOOL) crd-ref-docs
GOLANGCI_LINT := $(GO_TOOL) golangci-lint

# Folders of all Go modules of this repository, the root ("./") first.
GO_MODULES = $(shell git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | sed 's,go\.mod$$,,;s,^$$,./,' | sort)

# Those of them that have Go code of ours.
CODE_MODULES := ./ test/custom-upgrader/
