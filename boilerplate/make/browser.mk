# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Run

.PHONY: test-browser
test-browser: ## Look at the HTML report in Chromium, which is installed if there is none
	boilerplate/scripts/install-chromium
	go vet -tags browser ./test/browser/
	go test -tags browser -count 1 ./test/browser/
