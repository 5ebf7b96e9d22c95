# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# Needs Go, git and POSIX tools; everything else is pinned in boilerplate/tools/go.mod
# and built by Go on first use. `make help` lists the targets.

MODULE := github.com/appuio/managed-upgrade-operator

# What the manager reports by --version. Release builds may set it.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

.DEFAULT_GOAL := help

include boilerplate/make/help.mk
include boilerplate/make/tools.mk
include boilerplate/make/build.mk
include boilerplate/make/image.mk
include boilerplate/make/generate.mk
include boilerplate/make/bundle.mk
include boilerplate/make/lint.mk
include boilerplate/make/verify.mk
include boilerplate/make/test.mk
include boilerplate/make/browser.mk
