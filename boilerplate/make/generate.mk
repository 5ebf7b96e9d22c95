# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Generate

.PHONY: generate
generate: ## Generate deep copy functions, mocks and docs/steps.md
	$(CONTROLLER_GEN) object:headerFile=boilerplate/header.go.txt paths=./api/...
	go generate ./...
	go run ./boilerplate/stepsdoc -page docs/steps.md

.PHONY: manifests
manifests: ## Generate the CRDs in deploy/crds
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=deploy/crds
	go run ./boilerplate/trimcrd -below spec.template deploy/crds/managedupgrade.appuio.io_upgradejobhooks.yaml
	go run ./boilerplate/stepsdoc -crd deploy/crds/managedupgrade.appuio.io_upgraders.yaml
