# SPDX-FileCopyrightText: The managed-upgrade-operator authors
# SPDX-License-Identifier: Apache-2.0

##@ Run

# A package that starts a control plane takes about 700 MB of memory and, while the API server
# starts, a core of its own. Two at a time keeps deadlines in tests honest on two cores; more
# cores do not change that, so this is not the number of processors.
TEST_PACKAGES_AT_ONCE ?= 2
TEST_TIMEOUT ?= 45m

# The race detector needs cgo, which Go turns off by itself where there is no C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

.PHONY: programs
programs: ## Build etcd, kube-apiserver, Prometheus, ... for tests; takes minutes, needed once
	go run ./test/controlplane/cmd/assets

# The programs are built first, because `go test` would hide the progress and count the time.
.PHONY: test
test: programs ## Run all tests, end-to-end tests included, with the race detector
	cd test/custom-upgrader && go test $(RACE) ./...
	go test $(RACE) -timeout $(TEST_TIMEOUT) -p $(TEST_PACKAGES_AT_ONCE) ./...

.PHONY: demo
demo: build ## Watch an upgrade of a simulated cluster; KEEP=1 leaves it running
	go run ./test/demo $(if $(KEEP),--keep)

.PHONY: bench
bench: build ## Measure time, memory, CPU and API requests per upgrade
	go test -run '^$$' -bench . -benchmem ./pkg/...
	go run ./test/bench
