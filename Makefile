# `make` alone lists what can be made. Go and make are all that is needed.

BIN     := bin
CLUSTER := .cluster

# Versions of what the tests run on. Go modules pin them; here they are read
# back, so that each is written down in one place only.
module-version = $(shell sed -n 's|^\(require\)\{0,1\}[[:space:]]*$(2) \(v[^ ]*\).*|\2|p' $(1)/go.mod)
KUBERNETES_VERSION    := $(call module-version,test/cluster,k8s.io/kubernetes)
KWOK_VERSION          := $(call module-version,test/tools/kwok,sigs.k8s.io/kwok)
HELM_VERSION          := $(call module-version,test/tools/helm,helm.sh/helm/v3)
GOLANGCI_LINT_VERSION := $(call module-version,test/tools/lint,github.com/golangci/golangci-lint/v2)

# Programs without debug information: a third smaller, and faster to link.
BUILD   := CGO_ENABLED=0 go build -trimpath -buildvcs=false
LDFLAGS := -s -w

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List what can be made.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-zA-Z0-9_\/.$$()-]+:.*## / { sub(/\$$\(BIN\)/, "$(BIN)", $$1); printf "  %-22s %s\n", $$1, $$2 }' \
	  $(firstword $(MAKEFILE_LIST))

##@ Quality

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check the code of every module, down to its style.
	@echo "checking every module (about 6 minutes the first time) ..."
	$(BIN)/golangci-lint run
	cd test/cluster && ../../$(BIN)/golangci-lint run --config ../../.golangci.yml

.PHONY: test-cluster
test-cluster: $(BIN)/cluster cluster-binaries ## Test the local cluster itself, with a real start.
	cd test/cluster && go test ./internal/... ./cmd/cluster

##@ Local cluster

.PHONY: cluster-up
cluster-up: cluster-binaries ## Start a real Kubernetes on this machine.
	@$(BIN)/cluster up --dir $(CLUSTER)

.PHONY: cluster-down
cluster-down: $(BIN)/cluster ## Stop it.
	@$(BIN)/cluster down --dir $(CLUSTER)

.PHONY: cluster-status
cluster-status: $(BIN)/cluster ## Say which parts of it run.
	@$(BIN)/cluster status --dir $(CLUSTER)

##@ Programs

KUBE_PROGRAMS := etcd kube-apiserver kube-controller-manager kube-scheduler kubectl
KUBE_LINKS    := $(KUBE_PROGRAMS:%=$(BIN)/kube/%)

.PHONY: cluster-binaries
cluster-binaries: $(BIN)/kube/kube $(KUBE_LINKS) $(BIN)/kube/stages/.complete $(BIN)/kwok $(BIN)/helm $(BIN)/cluster ## Build all that the tests run on.

# One program is all of Kubernetes: it goes by the name that it is called by.
# The folder serves controller-runtime's envtest too: KUBEBUILDER_ASSETS=bin/kube
VERSION_PACKAGE := k8s.io/component-base/version
kube-version     = $(subst ., ,$(KUBERNETES_VERSION:v%=%))
KUBE_LDFLAGS    := $(LDFLAGS) \
  -X $(VERSION_PACKAGE).gitVersion=$(KUBERNETES_VERSION) \
  -X $(VERSION_PACKAGE).gitMajor=$(word 1,$(kube-version)) \
  -X $(VERSION_PACKAGE).gitMinor=$(word 2,$(kube-version)) \
  -X $(VERSION_PACKAGE).gitTreeState=clean

$(BIN)/kube/kube: test/cluster/go.mod test/cluster/go.sum $(wildcard test/cluster/cmd/kube/*.go) ## Build Kubernetes: etcd, API server, controllers, scheduler, kubectl.
	@echo "building Kubernetes $(KUBERNETES_VERSION) (about 5 minutes the first time) ..."
	@mkdir -p $(@D)
	@cd test/cluster && $(BUILD) -ldflags '$(KUBE_LDFLAGS)' -o ../../$@ ./cmd/kube

$(KUBE_LINKS): | $(BIN)/kube/kube
	@ln -sfn kube $@

$(BIN)/kwok: test/tools/kwok/go.mod test/tools/kwok/go.sum ## Build kwok, which plays nodes.
	@echo "building kwok $(KWOK_VERSION) (about 1 minute the first time) ..."
	@mkdir -p $(@D)
	@cd test/tools/kwok && $(BUILD) -ldflags '$(LDFLAGS) -X sigs.k8s.io/kwok/pkg/consts.Version=$(KWOK_VERSION)' -o ../../../$@ sigs.k8s.io/kwok/cmd/kwok

# How nodes, pods and volumes behave is taken from kwok's own module.
STAGES := pod/fast node/fast node/heartbeat-with-lease volume/fast

$(BIN)/kube/stages/.complete: test/tools/kwok/go.mod test/tools/kwok/go.sum
	@echo "copying the stages of kwok $(KWOK_VERSION) ..."
	@rm -rf $(@D) && mkdir -p $(@D)
	@cd test/tools/kwok && go mod download sigs.k8s.io/kwok
	@from=$$(cd test/tools/kwok && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage && \
	for stage in $(STAGES); do \
	  for file in $$from/$$stage/*.yaml; do \
	    case $$file in \
	    */kustomization.yaml) ;; \
	    */storage-class.yaml) install -m 644 $$file $(BIN)/kube/ ;; \
	    *) install -m 644 $$file $(@D)/ ;; \
	    esac || exit 1; \
	  done; \
	done
	@touch $@

$(BIN)/helm: test/tools/helm/go.mod test/tools/helm/go.sum ## Build the helm command.
	@echo "building Helm $(HELM_VERSION) (about 2 minutes the first time) ..."
	@mkdir -p $(@D)
	@cd test/tools/helm && $(BUILD) -ldflags '$(LDFLAGS) -X helm.sh/helm/v3/internal/version.version=$(HELM_VERSION)' -o ../../../$@ helm.sh/helm/v3/cmd/helm

CLUSTER_SOURCES := $(shell find test/cluster/cmd/cluster test/cluster/internal -type f ! -name '*_test.go')

$(BIN)/cluster: test/cluster/go.mod test/cluster/go.sum $(CLUSTER_SOURCES) ## Build the cluster command, which starts and stops Kubernetes.
	@echo "building the cluster command (about 1 minute the first time) ..."
	@mkdir -p $(@D)
	@cd test/cluster && $(BUILD) -ldflags '$(LDFLAGS)' -o ../../$@ ./cmd/cluster

$(BIN)/golangci-lint: test/tools/lint/go.mod test/tools/lint/go.sum ## Build the linter.
	@echo "building golangci-lint $(GOLANGCI_LINT_VERSION) (about 2 minutes the first time) ..."
	@mkdir -p $(@D)
	@cd test/tools/lint && $(BUILD) -ldflags '$(LDFLAGS) -X main.version=$(GOLANGCI_LINT_VERSION:v%=%)' -o ../../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
