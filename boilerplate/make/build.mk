# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Build

.PHONY: build
build: ## Build bin/manager and the plugin, bin/oc-managed_upgrade
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/manager ./cmd/manager
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/oc-managed_upgrade ./cmd/oc-managed_upgrade

.PHONY: clean
clean: ## Remove bin/
	rm -rf bin
