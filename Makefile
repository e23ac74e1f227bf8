# isthmus: `make help` lists what can be done.

SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN   := bin/isthmus
TOOL  := go tool -modfile=deploy/tools/go.mod
# Real programs run beside the tests: few packages at once keep them honest. Tests that
# wait most of their time are parallel within a package.
JOBS  ?= 2
PARALLEL ?= 6
AUDIT := graph/transport/audit
# The packages that take longest come first, so that none of them runs alone at the end.
TESTS ?= $(addprefix ./,$(wildcard cmd/isthmus e2e federation/config/etcd docs registries/consul xds/envoy xds)) ./...
SOAK_CASES ?= 3000
SOAK_FUZZ  ?= 60s
SOAK_KILLS ?= 100
# A program with the race detector waits a second before it ends, for races of what runs on.
# Tests wait for the end of what they start themselves: a hundred packages and as many hubs
# would wait for nothing.
export GORACE ?= atexit_sleep_ms=0
export ISTHMUS_TEST_LOGS ?= $(CURDIR)/.cache/test-logs

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X isthmus.dev/isthmus/internal/version.Version=$(VERSION)
# What -w drops from a program is not written into its packages at all: they compile and link sooner.
LEAN    := -gcflags=all=-dwarf=false

include deploy/testbed/testbed.mk
include graph/graph.mk

.PHONY: help
help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Build the hub and run it with a sample of two clusters.
	@$(BIN) serve --dev --data-dir .run

.PHONY: demo
demo: build tools ## Bridge three networks that cannot reach each other, show it, and leave it running (as root).
	@go build -o bin/demo ./deploy/demo && bin/demo up $(CURDIR)/$(BIN) $(CURDIR)/.demo

.PHONY: demo-down
demo-down: ## End what make demo left running.
	@go build -o bin/demo ./deploy/demo && bin/demo down $(CURDIR)/.demo

.PHONY: lab
lab: build tools ## Make two networks that cannot reach each other, for docs/bridge-two-networks.md (as root).
	@go build -o bin/demo ./deploy/demo && bin/demo lab $(CURDIR)/.lab

.PHONY: lab-down
lab-down: ## End what make lab left running.
	@go build -o bin/demo ./deploy/demo && bin/demo down $(CURDIR)/.lab

.PHONY: build
build: ## Build bin/isthmus.
	@echo "building $(BIN) (the first build compiles all libraries: a few minutes)"
	@mkdir -p bin && CGO_ENABLED=0 go build -trimpath $(LEAN) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/isthmus

.PHONY: test
test: tools ## Install what the tests need and run every test once, real programs and race detector included.
	@echo "compiling the tests with the race detector (the first time: some minutes)"
	@command -v chromium >/dev/null || echo "chromium is missing: GraphiQL is not opened in a browser"
	@command -v npm >/dev/null || echo "npm is missing: the audit suite of GraphQL over HTTP does not run"
	@! command -v npm >/dev/null || [ $(AUDIT)/node_modules -nt $(AUDIT)/package-lock.json ] || (cd $(AUDIT) && npm ci --silent && touch node_modules)
	@$(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- -race -trimpath -ldflags=-w -p $(JOBS) -parallel $(PARALLEL) -timeout 20m \
	  -tags "$$(command -v chromium >/dev/null && echo browser),$$(command -v npm >/dev/null && echo audit)" $(TESTS)

# Packages whose tests need a real program, a store or a network throughout, and the rooms that
# join the others: their tests take a second, and linking each of them takes several.
REAL := cmd|deploy|docs|e2e|federation/config/etcd|registries/consul|registries/kubernetes|xds|$\
  internal/hub|internal/hub/(clusters|collectors|identities|kinds|memory|mesh|proxies|settings|sources|status|web)
# Most of the time goes into compiling and linking: our packages are not optimised, which saves two fifths of compiling
# them, and the compiler collects no garbage before it has a gigabyte, which saves a fifth of the rest (four of them may
# take 4 GiB). Libraries are those that `make build` compiles. What go vet finds, `make lint` and `make test` report. Four
# packages at once: some tests wait.
UNIT := -short -trimpath -vet off -p 4 -parallel $(PARALLEL) -timeout 5m '-ldflags=-s -w' '-toolexec=env GOGC=off GOMEMLIMIT=1GiB' $\
  $(LEAN) '-gcflags=isthmus.dev/isthmus/...=-N -l -dwarf=false'
# As with TESTS, the packages that take longest come first.
FIRST := $(addprefix isthmus.dev/isthmus/,xds/envoy graph federation/config/schema federation/config/gatewayapi federation/config/apply $\
  graph/transport federation/config/configtest/memory internal/access)
.PHONY: test-unit
test-unit: export CGO_ENABLED = 0
test-unit: export GOGC = 400
test-unit: ## Run the tests that need no real program.
	@$(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- $(UNIT) \
	  $(FIRST) $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vE '/($(REAL))$$|/(cmd|deploy|e2e)/')

.PHONY: conformance
conformance: tools ## Run the cases of the conformance suite of the Gateway API that pass (as root).
	@cd deploy/conformance && go test -count 1 -timeout 20m .

.PHONY: race
race: tools ## Run every test three times with the race detector.
	@$(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- -race -trimpath -ldflags=-w -count 3 -p $(JOBS) -parallel $(PARALLEL) -timeout 60m $(TESTS)

.PHONY: e2e
e2e: tools ## Run the end-to-end tests: real clusters, real Envoys, network namespaces.
	@$(TOOL) gotestsum --format standard-verbose -- -race -count 1 -timeout 20m ./e2e/...

.PHONY: soak
soak: race ## Run every test three times, properties with thousands of cases, 100 kills, and each fuzz test for a minute.
	@echo "the hub and a committing process, killed $(SOAK_KILLS) times each"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -p 1 -timeout 60m \
	  -run '^Test(F01KilledHubLosesNoAcknowledgedApply|KilledAtRandomMoments|CollectorNeverTakesWhatACommitRefersTo)$$' ./cmd/isthmus ./federation/config/etcd -crashes $(SOAK_KILLS)
	@echo "two hubs on a cluster of three etcd members, through every fault, five times"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 60m -run '^TestR74' ./cmd/isthmus -faultrounds 5 -faultchanges 100
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 20m -run TestLargestRequestIsBounded ./federation/config/apply -documents 12000
	@echo "a configuration server with a million objects"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 20m -run '^TestM03' ./cmd/isthmus -objects 1000000
	@echo "a hub without clusters, for a minute"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 20m -run '^TestR65' ./cmd/isthmus -idle 60s
	@echo "the hub, killed at every step of an attach"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 30m -run '^TestF03' ./cmd/isthmus -attachsteps 0
	@echo "three networks: shares of 20,000 requests, 100 rotations and a minute of a frozen API server under load, a link that flaps"
	@$(TOOL) gotestsum --format standard-verbose -- -count 1 -timeout 60m -run '^TestBridge$$' ./e2e -requests 20000 -rounds 3 -frozen 60s -rotations 100 -flaps 10
	@echo "the conformance suite of the Gateway API"
	@$(MAKE) --no-print-directory conformance
	@echo "properties, $(SOAK_CASES) cases each"
	@$(TOOL) gotestsum --format pkgname -- -count 1 -p $(JOBS) -timeout 60m \
	  $$(grep -rl --include='*_test.go' -E '^\s"pgregory.net/rapid"$$' . | xargs -n1 dirname | sort -u) -rapid.checks $(SOAK_CASES)
	@set -e -o pipefail; for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  for name in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$name for $(SOAK_FUZZ)"; \
	    go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(SOAK_FUZZ) $$package | tail -2; \
	  done; done

.PHONY: bench
bench: build tools ## Measure what the hub costs, as ratios within one run.
	@go run ./deploy/bench
	@go test ./graph -run '^$$' -bench R102 -benchtime 1x

.PHONY: lint
lint: ## Check style, and that generated files are as their sources say.
	@echo "building the linter (the first time: some minutes)"
	@GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $(TOOL) golangci-lint run # what it keeps names files of one checkout
	@go vet ./...
	@go test -run TestNoPassageStandsTwice .
	@go test ./docs/words
	@go run -modfile=deploy/tools/go.mod github.com/golangci/misspell/cmd/misspell -error $$(git ls-files '*.md' '*.graphql')
	@go mod verify >/dev/null && echo "modules verified"

.PHONY: generate
generate: ## Write generated code and copied definitions anew.
	@go generate ./...

.PHONY: clean
clean: ## Remove what was built here; installed tools stay in the user's cache.
	@rm -rf bin .run .cache
