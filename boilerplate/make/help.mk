# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# The list of targets is read from the makefiles: a target shows up in it by
# having a "## description" on its line, under the last "##@ Heading".

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make <target>" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
