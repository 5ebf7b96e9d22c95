# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Check

LINT_CONFIG := $(CURDIR)/boilerplate/golangci.yml

.PHONY: fmt
fmt: ## Format the Go code
	$(GOLANGCI_LINT) fmt --config $(LINT_CONFIG)

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of every module
	@set -e; for module in $(GO_MODULES); do echo "go mod tidy in $$module"; (cd $$module && go mod tidy); done

.PHONY: vet
vet: ## Run go vet
	@set -e; for module in $(CODE_MODULES); do echo "go vet in $$module"; (cd $$module && go vet ./...); done

.PHONY: lint
lint: ## Run golangci-lint, check licence headers and the links in pages
	boilerplate/scripts/check-licence-headers
	boilerplate/scripts/check-links
	@set -e; for module in $(CODE_MODULES); do echo "golangci-lint in $$module"; (cd $$module && $(GOLANGCI_LINT) run --config $(LINT_CONFIG)); done
