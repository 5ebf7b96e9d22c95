# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

# Nothing here changes the working tree, so that the answer is about what is in it:
# the same in a fresh clone and in the middle of an edit.

.PHONY: verify
verify: verify-tidy verify-generated verify-crds verify-bundle vet lint ## Run all checks but the tests

.PHONY: verify-tidy
verify-tidy:
	@for module in $(GO_MODULES); do \
		echo "go mod tidy -diff in $$module"; \
		(cd $$module && go mod tidy -diff) || { echo "run 'make tidy' and commit the result" >&2; exit 1; }; \
	done

.PHONY: verify-generated
verify-generated:
	boilerplate/scripts/check-generated

.PHONY: verify-crds
verify-crds:
	boilerplate/scripts/check-crd-size deploy/crds/*.yaml
