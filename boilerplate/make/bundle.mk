# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# What the Operator Lifecycle Manager installs, made of what kustomize does; see docs/olm.md. The version is that of the
# image in deploy/kustomization.yaml. A release sets the time too, and commits what comes of it.

BUNDLE_CREATED ?= 2026-11-22T00:00:00Z
# More for boilerplate/bundle, images by their digests for example; its -help tells what there is.
BUNDLE_OPTIONS ?=

# The tools of that manager are a module of their own, because of the many others that they bring. Neither cgo nor
# what it is for (SQLite, GPG, btrfs) is needed to look at files. Not `go tool`, which knows no -tags.
OLM_TOOL := CGO_ENABLED=0 go run -modfile=$(CURDIR)/boilerplate/olm/go.mod -tags=json1,containers_image_openpgp,exclude_graphdriver_btrfs
OPERATOR_VERIFY := $(OLM_TOOL) github.com/operator-framework/api/cmd/operator-verify
OPM := $(OLM_TOOL) github.com/operator-framework/operator-registry/cmd/opm

.PHONY: bundle
bundle: ## Generate the OLM bundle in deploy/bundle and its catalogue in deploy/catalog
	go run ./boilerplate/bundle -created $(BUNDLE_CREATED) $(BUNDLE_OPTIONS)

# operator-verify prints what it finds, and succeeds whatever that is. Two warnings are of no use: that there is a newer
# validator, which it cannot run, and that Events and disruption budgets were removed in Kubernetes 1.25, which it says of
# every rule that names them, because rules know no versions.
.PHONY: verify-bundle
verify-bundle:
	@findings=$$($(OPERATOR_VERIFY) manifests --object_validate --operatorhub_validate deploy/bundle 2>&1 | \
		grep -vE '^go: downloading |"operatorhub.*" validator is deprecated|removed in v1\.25.* for ((events|poddisruptionbudgets): \([^)]*Rules[^)]*\),)+"$$'); \
		if [ -n "$$findings" ]; then echo "$$findings" >&2; exit 1; fi
	@$(OPM) validate deploy/catalog/configs
