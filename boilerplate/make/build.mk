# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Build

.PHONY: build
build: ## Build bin/manager
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/manager ./cmd/manager

.PHONY: clean
clean: ## Remove bin/
	rm -rf bin
