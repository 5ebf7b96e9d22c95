# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Release

# docker, with buildx for more than one platform, or podman.
CONTAINER_TOOL ?= docker
IMAGE ?= ghcr.io/appuio/managed-upgrade-operator
IMAGE_TAG ?= $(VERSION)
MUST_GATHER_IMAGE ?= $(IMAGE)-must-gather
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64,linux/ppc64le,linux/s390x

# Which of Go's cryptography is built in: a validated version, in FIPS mode, or off.
GOFIPS140 ?= v1.0.0
IMAGE_ARGS = --build-arg VERSION=$(VERSION) --build-arg GOFIPS140=$(GOFIPS140)

.PHONY: image
image: ## Build the operator's image for this machine's processor; CONTAINER_TOOL, IMAGE, IMAGE_TAG
	$(CONTAINER_TOOL) build $(IMAGE_ARGS) -t $(IMAGE):$(IMAGE_TAG) .

# An image of several platforms is no single image: docker can only push it, podman keeps it as a manifest.
ifeq ($(notdir $(CONTAINER_TOOL)),podman)
push-platforms = $(CONTAINER_TOOL) build $(2) --platform $(3) --manifest $(1):$(IMAGE_TAG) . && $(CONTAINER_TOOL) manifest push $(1):$(IMAGE_TAG)
else
push-platforms = $(CONTAINER_TOOL) buildx build $(2) --platform $(3) --provenance=true --sbom=true -t $(1):$(IMAGE_TAG) --push .
endif

# What `oc adm must-gather` needs comes with a base image, which has to be there for each of the platforms.
MUST_GATHER_BASE ?= quay.io/openshift/origin-must-gather:4.20
MUST_GATHER_PLATFORMS ?= linux/amd64
MUST_GATHER_ARGS = --build-arg VERSION=$(VERSION) --build-arg BASE=$(MUST_GATHER_BASE) -f deploy/must-gather/Dockerfile

.PHONY: images
images: ## Build and push the images: the operator's for IMAGE_PLATFORMS, that for must-gather for MUST_GATHER_PLATFORMS
	$(call push-platforms,$(IMAGE),$(IMAGE_ARGS),$(IMAGE_PLATFORMS))
	$(call push-platforms,$(MUST_GATHER_IMAGE),$(MUST_GATHER_ARGS),$(MUST_GATHER_PLATFORMS))

.PHONY: must-gather-image
must-gather-image: ## Build the image for `oc adm must-gather` for this machine's processor; MUST_GATHER_BASE, MUST_GATHER_IMAGE
	$(CONTAINER_TOOL) build $(MUST_GATHER_ARGS) -t $(MUST_GATHER_IMAGE):$(IMAGE_TAG) .

PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 linux/ppc64le linux/s390x darwin/amd64 darwin/arm64 windows/amd64
PLUGIN_URL ?= https://github.com/appuio/managed-upgrade-operator/releases/download/$(VERSION)
PLUGIN_DIR := bin/plugin

# The same source makes the same archives, byte by byte, whoever makes them and when. Needs GNU tar and sha256sum.
ARCHIVE := tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -cf -

.PHONY: plugin-archives
plugin-archives: ## Build the plugin for all PLUGIN_PLATFORMS into bin/plugin/, with a manifest for krew
	rm -rf $(PLUGIN_DIR) && mkdir -p $(PLUGIN_DIR)
	@set -eu; \
	manifest=$(PLUGIN_DIR)/managed-upgrade.yaml; \
	boilerplate/scripts/krew-manifest head $(VERSION) >$$manifest; \
	for platform in $(PLUGIN_PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} program=oc-managed_upgrade; \
		[ $$os != windows ] || program=$$program.exe; \
		archive=oc-managed_upgrade_$${os}_$$arch.tar.gz; \
		echo "build $$archive"; \
		mkdir $(PLUGIN_DIR)/stage && cp LICENSE $(PLUGIN_DIR)/stage/; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' \
			-o $(PLUGIN_DIR)/stage/$$program ./cmd/oc-managed_upgrade; \
		chmod 755 $(PLUGIN_DIR)/stage/$$program && chmod 644 $(PLUGIN_DIR)/stage/LICENSE; \
		$(ARCHIVE) -C $(PLUGIN_DIR)/stage LICENSE $$program | gzip -n -9 >$(PLUGIN_DIR)/$$archive; \
		rm -r $(PLUGIN_DIR)/stage; \
		sum=$$(sha256sum $(PLUGIN_DIR)/$$archive | cut -d ' ' -f 1); \
		boilerplate/scripts/krew-manifest platform $$os $$arch $(PLUGIN_URL)/$$archive $$sum $$program >>$$manifest; \
	done
	cd $(PLUGIN_DIR) && sha256sum *.tar.gz >SHA256SUMS
