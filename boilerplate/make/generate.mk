# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Generate

.PHONY: generate
generate: ## Generate deep copy functions, mocks and the pages of docs that are made of code
	$(CONTROLLER_GEN) object:headerFile=boilerplate/header.go.txt paths=./api/...
	go generate ./...
	go run ./boilerplate/stepsdoc -page docs/steps.md
	go run ./boilerplate/metricsdoc -page docs/metrics.md
	go run ./boilerplate/clidoc -page docs/cli.md
	$(MAKE) --no-print-directory api-docs

.PHONY: manifests
manifests: ## Generate the CRDs in deploy/crds
	$(CONTROLLER_GEN) crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=deploy/crds
	go run ./boilerplate/trimcrd -below spec.template deploy/crds/managedupgrade.appuio.io_upgradejobhooks.yaml
	go run ./boilerplate/stepsdoc -crd deploy/crds/managedupgrade.appuio.io_upgraders.yaml

# The tool warns of parts of Kubernetes' own types that it leaves out, which the page links to anyway.
.PHONY: api-docs
api-docs:
	$(CRD_REF_DOCS) --log-level=ERROR --source-path=api/v1beta1 --config=boilerplate/apidocs/config.yaml --renderer=markdown \
		--templates-dir=boilerplate/apidocs/templates --output-path=docs/api.md
