# fleetling: what can be made here.
#
# A fresh machine needs Go, git and make; no C compiler. `make test` and `make demo`
# install what they call beside these (gpg, ssh-keygen, nft, dig ...) by apt, where they may.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# One set of build flags everywhere, so that all modules share the build cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath
GO_BUILD := go build -ldflags "-s -w"

CACHE := .cache
BIN := $(CURDIR)/$(CACHE)/bin
IMAGE ?= fleetling:dev

# Pinned tools, built once.
CONTROLLER_GEN := $(BIN)/controller-gen@v0.21.0
GOFUMPT := $(BIN)/gofumpt@v0.12.0
STATICCHECK := $(BIN)/staticcheck@v0.8.2
GOLANGCI := $(BIN)/golangci-lint@v2.15.0

## help: print this list
.PHONY: help
help:
	@sed -n 's/^## //p' Makefile | sed -e 's/: /\t/' | expand -t 16

## build: build the binary into .cache/fleetling
.PHONY: build
build:
	$(GO_BUILD) -o $(CACHE)/fleetling ./agent/cmd/fleetling
	@ls -lh $(CACHE)/fleetling | awk '{print $$9, $$5}'

## demo: run the main job on two real API servers; KEEP=1 leaves them running
.PHONY: demo
demo: apt control-plane
	cd e2e && go run ./demo

## test: run all tests, unit and e2e (cold: see README.md)
.PHONY: test
test: apt control-plane capi-manager
	go test ./...
	# -count=1: the agent is built by the tests, and Go's cache of results would not see it change.
	cd e2e && go test -count=1 -timeout 40m ./...

## test-long: run the suites that take long
.PHONY: test-long
test-long: apt control-plane capi-manager capi-providers
	cd e2e && FLEETLING_LONG=1 go test -count=1 -timeout 120m -run Long ./...

## bench: measure, against a floor in the same run or the bar of the ClusterSet
.PHONY: bench
bench: apt control-plane
	go test -run '^$$' -bench . -benchmem ./...
	cd e2e && go test -timeout 40m -run '^$$' -bench . ./...

## race: run the unit tests under the race detector (needs gcc)
.PHONY: race
race:
	CGO_ENABLED=1 go test -race ./...

## lint: run golangci-lint (its first build takes minutes)
.PHONY: lint
lint: $(GOLANGCI)
	$(GOLANGCI) run ./...
	cd e2e && $(GOLANGCI) run --config ../.golangci.yml ./...

## verify: generate, tidy, format and check; fails if that changes a file
.PHONY: verify
verify: generate $(GOFUMPT) $(STATICCHECK)
	go mod tidy
	cd e2e && go mod tidy
	$(GOFUMPT) -l -w agent apply discovery sources e2e
	go vet ./... && cd e2e && go vet ./...
	$(STATICCHECK) ./...
	cd e2e && $(STATICCHECK) ./...
	@git diff --exit-code || { echo "make verify changed files: commit them" >&2; exit 1; }

## generate: write what is generated from the API types
.PHONY: generate
generate: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object crd paths=./agent/api/... output:crd:dir=manifests/crds
	$(CONTROLLER_GEN) schemapatch:manifests=$$(go list -m -f '{{.Dir}}' sigs.k8s.io/mcs-api)/config/crd paths=sigs.k8s.io/mcs-api/pkg/apis/... output:schemapatch:dir=manifests/crds

## control-plane: build etcd, kube-apiserver, kube-controller-manager, kube-proxy and CoreDNS, once
.PHONY: control-plane
control-plane:
	cd e2e && go run ./cmd/controlplane

## capi-manager: build the core manager of Cluster API, once
.PHONY: capi-manager
capi-manager:
	cd e2e && go run ./cmd/capi manager

## capi-providers: build the providers of Cluster API that make test-long runs, once
.PHONY: capi-providers
capi-providers:
	cd e2e && go run ./cmd/capi providers

## image: build the container image IMAGE (needs docker or podman)
.PHONY: image
image:
	docker build -t $(IMAGE) .

# What the tests call beside Go and git.
.PHONY: apt
apt:
	@missing=""; \
	for need in gpg:gnupg ssh-keygen:openssh-client ip:iproute2 nft:nftables nslookup:bind9-dnsutils nc:netcat-openbsd socat:socat; do \
	  command -v "$${need%%:*}" >/dev/null || missing="$$missing $${need#*:}"; \
	done; \
	[ -z "$$missing" ] || { \
	  echo "installing:$$missing"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; } || { \
	    echo "please run: apt-get install -y$$missing" >&2; exit 2; }; }

$(BIN)/controller-gen@%:
	$(call install,sigs.k8s.io/controller-tools/cmd/controller-gen,$*)
$(BIN)/gofumpt@%:
	$(call install,mvdan.cc/gofumpt,$*)
$(BIN)/staticcheck@%:
	$(call install,honnef.co/go/tools/cmd/staticcheck,$*)
$(BIN)/golangci-lint@%:
	$(call install,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$*)

define install
	@mkdir -p $(BIN)
	@echo "building $(notdir $(1)) $(2)"
	@GOBIN=$(BIN) go install $(1)@$(2) && mv $(BIN)/$(notdir $(1)) $@
endef
