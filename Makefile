# `make` without a target lists the targets by task. Requirements: Go and make.

BIN := bin

# The cluster that install, uninstall, run and demo use: the folder of a local
# cluster, or "existing" for the cluster of $KUBECONFIG.
CLUSTER       ?= .cluster
LOCAL_CLUSTER := $(if $(filter existing,$(CLUSTER)),.cluster,$(CLUSTER))
# The tests and the demo use local clusters of their own.
TEST_CLUSTER := .cluster-test
DEMO_CLUSTER := $(if $(filter existing,$(CLUSTER)),existing,.cluster-demo)

# The version that the binary reports, and the image to build and deploy.
GIT_VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
VERSION     ?= $(or $(GIT_VERSION),dev)
COMMIT      ?= $(shell git rev-parse HEAD 2>/dev/null)
IMG         ?= ghcr.io/chartwright/chartwright:$(VERSION)
PULL_POLICY ?= IfNotPresent
CONTAINER_TOOL ?= docker

# Versions of the tools, read from the Go modules that pin them.
module-version = $(shell sed -n 's|^\(require\)\{0,1\}[[:space:]]*$(2) \(v[^ ]*\).*|\2|p' $(1)/go.mod)
KUBERNETES_VERSION    := $(call module-version,test/cluster,k8s.io/kubernetes)
ETCD_VERSION          := $(call module-version,test/cluster,go.etcd.io/etcd/server/v3)
KWOK_VERSION          := $(call module-version,test/cluster,sigs.k8s.io/kwok)
GOVMOMI_VERSION       := $(call module-version,test/tools/vsphere,github.com/vmware/govmomi)
HELM_VERSION          := $(call module-version,test,helm.sh/helm/v3)
VALE_VERSION          := $(call module-version,test/tools/vale,github.com/errata-ai/vale/v3)
GOVULNCHECK_VERSION   := $(call module-version,test/tools/vuln,golang.org/x/vuln)
GOTESTSUM_VERSION     := $(call module-version,test/tools/gotestsum,gotest.tools/gotestsum)
GOLANGCI_LINT_VERSION := $(call module-version,test/tools/lint,github.com/golangci/golangci-lint/v2)
CYCLONEDX_VERSION     := $(call module-version,test/tools/sbom,github.com/CycloneDX/cyclonedx-gomod)
GORELEASER_VERSION    := $(call module-version,test/tools/goreleaser,github.com/goreleaser/goreleaser/v2)
CONTAINERD_VERSION    := $(call module-version,test/tools/containerd,github.com/containerd/containerd/v2)
CNI_VERSION           := $(call module-version,test/tools/cni,github.com/containernetworking/plugins)
EXPORTER_VERSION      := $(call module-version,test/tools/postgres-exporter,github.com/prometheus-community/postgres_exporter)
COREDNS_VERSION       := $(call module-version,test/tools/coredns,github.com/coredns/coredns)
D2_VERSION            := $(call module-version,test/tools/d2,oss.terrastruct.com/d2)

# Build, test and lint use the same settings, so that they share the build cache.
# This saves minutes on the first run. -trimpath would change the settings, so
# only release binaries use it.
export CGO_ENABLED := 0

# Nothing reads debug information (DWARF): compiling without it takes an eighth less time.
# Stack traces and profiles do not need it.
NO_DWARF       := -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(NO_DWARF),$(GOFLAGS)) $(NO_DWARF))

# The compiler collects garbage only if it needs more than 1.5 GB: this saves a
# quarter of the time. The setting must not reach programs that tests measure.
COMPILER := GOGC=off GOMEMLIMIT=1536MiB

# Programs have no symbol table either: they are smaller and link faster.
BUILD   := env $(COMPILER) go build -v -buildvcs=false
LDFLAGS := -s -w

# Prints the name of a program, and how long its build takes.
building = $(CURDIR)/test/tools/progress '$(1)' $(BUILD)

# The source files of a program.
sources = $(shell find $(1) -type f ! -name '*_test.go' ! -path '*/testdata/*')

# The platforms of a release, and the release binary of one platform.
PLATFORMS     ?= linux/amd64 linux/arm64
release-binary = dist/$(subst /,-,$(1))/chartwright
comma         := ,
space         := $(subst ,, )

# The programs that start the cluster and connect to it. For an existing cluster
# the user's own kubectl is preferred, because it has the login configuration.
OWN_KUBECTL := $(shell command -v kubectl)
OWN_HELM    := $(shell command -v helm)
ifeq ($(CLUSTER),existing)
CLUSTER_PROGRAMS := $(if $(OWN_KUBECTL),,$(BIN)/kube/kubectl) $(if $(OWN_HELM),,$(BIN)/helm)
KUBECTL          := $(or $(OWN_KUBECTL),$(BIN)/kube/kubectl)
else
CLUSTER_PROGRAMS := cluster-binaries
KUBECTL          := KUBECONFIG=$(CLUSTER)/kubeconfig $(BIN)/kube/kubectl
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The lines "##@ TASK" group the targets. A task may occur several times.
.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { task = substr($$0, 5); if (!(task in targets)) order[++tasks] = task } \
	  /^[a-zA-Z0-9_-]+:.*## / { targets[task] = targets[task] sprintf("  %-22s %s\n", $$1, $$2) } \
	  END { for (i = 1; i <= tasks; i++) if (targets[order[i]]) printf("%s\n%s\n", order[i], targets[order[i]]) }' \
	  $(firstword $(MAKEFILE_LIST))

##@ Try it

.PHONY: run
run: run-programs ## Start a cluster, the operator and the samples; run until Ctrl-C.
	@$(BIN)/local run --cluster $(CLUSTER)

.PHONY: demo
demo: run-programs ## Show install, edit, drift correction and deletion, then exit.
	@$(BIN)/local demo --cluster $(DEMO_CLUSTER)

# The download of Kubernetes or of its sources overlaps with the build of the operator.
.PHONY: run-programs
run-programs:
	@$(MAKE) --no-print-directory -j2 build $(if $(filter cluster-binaries,$(CLUSTER_PROGRAMS)),download-kubernetes)
	@$(MAKE) --no-print-directory -j2 $(BIN)/local $(CLUSTER_PROGRAMS)

##@ Change the code

.PHONY: build
build: $(BIN)/chartwright $(BIN)/kubectl-chartwright ## Build the operator (one static binary) and its kubectl plugin.

# "make lint" runs vet. The tests themselves do not get the settings of the compiler.
# The timeout is generous: on a busy machine the tests take several times as long.
TEST_FLAGS := -vet=off -exec 'env -u GOGC -u GOMEMLIMIT' -count=1 -timeout 60m
GO_TEST    := env $(COMPILER) go test $(TEST_FLAGS)

# With RERUN=yes, as in CI, up to five tests that fail run a second time, and fail only
# if they do so again. The summary lists them in both cases.
RERUN     ?=
GOTESTSUM := $(if $(RERUN),$(BIN)/gotestsum)

# Tests packages (1), with more flags (2).
test-packages = $(if $(RERUN),env $(COMPILER) $(CURDIR)/$(BIN)/gotestsum --format standard-quiet --hide-summary skipped \
  --rerun-fails=1 --rerun-fails-max-failures 5 --rerun-fails-run-root-test --packages "$(1)" -- $(TEST_FLAGS) $(2),$(GO_TEST) $(2) $(1))

# The race detector needs a C compiler. It runs for packages whose goroutines share
# memory, which then need no other run.
RACE          := $(if $(shell command -v $${CC:-cc}),yes)
RACE_PACKAGES := release reconcile

# The attack tests measure waiting times of tenants, so they run alone.
ATTACKS := attack

# The commands of test-attack and test-race, which "make test" runs, too.
attack  = cd test && CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube $(call test-packages,./$(ATTACKS))
race    = CGO_ENABLED=1 KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube $(call test-packages,$(RACE_PACKAGES:%=./internal/%/...),-race)

# The tests of charts/vmgroup find these programs next to the operator's binary.
VSPHERE := $(BIN)/govc $(BIN)/vcsim

# The go command runs only tests that a change can affect, and prints "(cached)" for
# the others. It does not notice changes of files that another module reads, so tests
# below test/ always run. Tests that need an API server are skipped.
UNIT_TEST := go test -vet=off -short -ldflags '$(LDFLAGS)'

.PHONY: test-unit
test-unit: ## Run the unit tests, without a cluster.
	@$(UNIT_TEST) ./...
	@cd test && $(UNIT_TEST) -count=1 ./architecture ./docs

# The folder below test/ with the test.
PACKAGE ?= e2e

.PHONY: test-one
test-one: build cluster-binaries ## Run one end-to-end test on its own cluster: TEST (its name), PACKAGE (e2e).
	@[ -n '$(TEST)' ] || { echo "Name a test: make test-one TEST=TestEdit_MakesRevision"; exit 1; }
	@cd test && CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube \
	  $(GO_TEST) -v ./$(PACKAGE) -run '^$(TEST)$$'

##@ Check a change

# All tests run, even after a failure. The cluster is stopped in every case. CI sets
# LATER=yes and runs test-attack and test-race afterwards, if there is time.
LATER    ?=
RACE_NOW := $(if $(LATER),,$(RACE))

.PHONY: test
test: build cluster-binaries $(VSPHERE) $(GOTESTSUM) ## Run all tests, on a test cluster.
	@$(BIN)/cluster down --dir $(TEST_CLUSTER) >/dev/null
	@rm -f $(TEST_CLUSTER)/audit.log
	@trap 'exit 130' HUP INT TERM; trap '$(BIN)/cluster down --dir $(TEST_CLUSTER)' EXIT; \
	$(BIN)/cluster up --dir $(TEST_CLUSTER) --audit-log $(TEST_CLUSTER)/audit.log || exit 1; \
	export CHARTWRIGHT_CLUSTER=$(CURDIR)/$(TEST_CLUSTER) KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube \
	  CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright; \
	result=0; \
	echo "testing the operator ..."; \
	$(call test-packages,$(if $(RACE_NOW),$$(go list ./... | grep -Ev '/internal/($(subst $(space),|,$(RACE_PACKAGES)))(/|$$)'),./...)) || result=1; \
	(cd test && $(call test-packages,$$(go list ./... | grep -v '/$(ATTACKS)$$'))) || result=1; \
	echo "testing the local cluster ..."; \
	(cd test/cluster && $(call test-packages,./internal/... ./cmd/cluster ./cmd/download)) || result=1; \
	$(if $(LATER),,echo "attacking the operator ..."; ($(attack)) || result=1;) \
	$(if $(RACE_NOW),echo "testing concurrent packages with the race detector ..."; $(race) || result=1;) \
	exit $$result

.PHONY: test-attack
test-attack: build cluster-binaries $(GOTESTSUM) ## Attack the operator as a tenant would.
	@echo "attacking the operator ..."
	@$(attack)

.PHONY: test-race
test-race: cluster-binaries $(GOTESTSUM) ## Test concurrent packages with the race detector, which needs a C compiler.
	@echo "testing concurrent packages with the race detector (about 3 minutes the first time) ..."
	@$(race)

# The tests with containers need a machine that can run a node: Linux, root,
# namespaces, cgroups, a Debian mirror. A machine without them skips the tests.
NODE_CLUSTER  := .cluster-node
NODE_PACKAGES := mmdebstrap nftables runc
NODE_TEST     ?= .

.PHONY: test-node
test-node: $(BIN)/cluster $(BIN)/image ## Run the tests with containers, on a cluster with one real node: NODE_TEST (a regular expression).
	@if $(MAKE) --no-print-directory node-requirements; then exec $(MAKE) --no-print-directory run-test-node; \
	else echo "skipped: this machine cannot run containers"; fi

# Programs run in the background, because the shell handles a signal only when a
# program in the foreground has ended. "cluster down" fails if something is left.
.PHONY: run-test-node
run-test-node: node-binaries node-images $(BIN)/helm
	@$(BIN)/cluster down --dir $(NODE_CLUSTER) >/dev/null
	@cd test && go test -c -o ../$(BIN)/node.test ./node
	@$(if $(filter .,$(NODE_TEST)),echo "testing the upgrade of a database in images ..."; \
	cd test && CHARTWRIGHT_IMAGES=$(CURDIR)/$(BIN)/images $(GO_TEST) -v ./charts/database -run '^TestPostgreSQL_MajorUpgrade$$')
	@trap 'kill $$pid 2>/dev/null; wait $$pid; exit 130' HUP INT TERM; trap '$(BIN)/cluster down --dir $(NODE_CLUSTER) || exit 1' EXIT; \
	$(BIN)/cluster up --dir $(NODE_CLUSTER) --containers --images $(BIN)/images --timeout 5m & pid=$$!; wait $$pid || exit 1; \
	(cd test/node && CHARTWRIGHT_NODE=$(CURDIR)/$(NODE_CLUSTER) exec ../../$(BIN)/node.test -test.v -test.parallel 4 -test.timeout 30m -test.run '$(NODE_TEST)') & pid=$$!; wait $$pid

# Debian packages are installed only by root, and only if they are missing.
.PHONY: node-requirements
node-requirements: $(BIN)/cluster $(BIN)/image
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  missing=; for package in $(NODE_PACKAGES); do dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; done; \
	  [ -z "$$missing" ] || { echo "installing the Debian packages$$missing ..."; \
	    apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends $$missing >/dev/null || echo "apt-get failed"; }; \
	fi
	@$(BIN)/cluster requirements && $(BIN)/image requirements --out $(BIN)/images

.PHONY: node-images
node-images: build $(BIN)/image $(BIN)/node/chartwright-next $(BIN)/node/coredns $(BIN)/postgres_exporter $(VSPHERE)
	@$(BIN)/image build --bin $(BIN) --out $(BIN)/images $(addprefix --operator ,$(OPERATOR_LAYOUT))

##@ Measure and record

# Run this with the binary of each released version, and commit the result.
PREVIOUS ?= $(BIN)/chartwright

.PHONY: previous-state
previous-state: build cluster-binaries ## Test up- and downgrades with the released operator PREVIOUS, and record its cluster state.
	cd test && CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright CHARTWRIGHT_PREVIOUS=$(abspath $(PREVIOUS)) \
	  KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube go test -count=1 ./e2e \
	  -run '^TestPreviousVersion_(CreateState|DowngradeChangesNothing|ReplicasOfTwoVersions)$$'

# Seeds run in parallel. Four decks with five seeds run each action about 20
# times, with a few hundred kills and injected faults.
SOAK_SEEDS ?= 1,2,3,4,5
SOAK_DECKS ?= 4
SOAK_TIME  ?= 30m

# End-to-end tests that take too long for "make test", or make fewer attempts there.
LONG_TESTS := TestDrift_CorrectionSpeed|TestPlan_EqualsAction|TestRollout_AThousandReleases

.PHONY: soak
soak: build cluster-binaries ## Run random actions and faults for a long time, and long tests: SOAK_SEEDS, SOAK_DECKS, SOAK_TIME.
	cd test && CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright CHARTWRIGHT_SOAK_SEEDS=$(SOAK_SEEDS) CHARTWRIGHT_SOAK_DECKS=$(SOAK_DECKS) \
	  CHARTWRIGHT_SOAK_TIME=$(SOAK_TIME) go test -count=1 -v -timeout 2h ./soak
	cd test && CHARTWRIGHT_BINARY=$(CURDIR)/$(BIN)/chartwright KUBEBUILDER_ASSETS=$(CURDIR)/$(BIN)/kube CHARTWRIGHT_LONG=1 \
	  $(GO_TEST) -v ./e2e -run '^($(LONG_TESTS))$$'

# Run benchmarks on an otherwise idle machine. See docs/dev/performance.md.
BENCH_CRS   ?= 1000
BENCH_FLAGS ?=

.PHONY: bench
bench: build cluster-binaries $(BIN)/bench ## Measure speed and resource use of the operator: BENCH_CRS, BENCH_FLAGS.
	@$(BIN)/bench run --crs $(BENCH_CRS) $(BENCH_FLAGS)

##@ Check a change

.PHONY: bench-check
bench-check: build cluster-binaries $(BIN)/bench ## Fail if an install, an idle operator, an idle kind or a restart exceeds its limits.
	@$(BIN)/bench check

##@ Measure and record

FUZZ_TIME ?= 1m

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZ_TIME (make test runs only the seeds).
	@grep -roE '^func Fuzz[A-Za-z_]+' internal --include='*_test.go' | while IFS=: read -r file fuzz; do \
	  echo "$${file%/*}: $${fuzz#func }"; \
	  go test -run '^$$' -fuzz "^$${fuzz#func }$$" -fuzztime $(FUZZ_TIME) ./$${file%/*} || exit 1; \
	done

##@ Check a change

.PHONY: test-cluster
test-cluster: $(BIN)/cluster cluster-binaries ## Test the local cluster itself.
	cd test/cluster && go test ./internal/... ./cmd/cluster ./cmd/download

##@ Change the code

# test/cluster/cmd/kube is left out: it imports all of Kubernetes, which takes 6
# minutes to analyze. verify checks its format.
.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint the code of every module.
	@echo "checking the code (about 1 minute the first time) ..."
	$(BIN)/golangci-lint run --allow-serial-runners
	cd test && ../$(BIN)/golangci-lint run --allow-serial-runners --config ../.golangci.yml
	cd test/cluster && ../../$(BIN)/golangci-lint run --allow-serial-runners --config ../../.golangci.yml ./internal/... ./cmd/cluster ./cmd/download
	cd test/tools/vsphere && ../../../$(BIN)/golangci-lint run --allow-serial-runners --config ../../../.golangci.yml
	cd test/tools/coredns && ../../../$(BIN)/golangci-lint run --allow-serial-runners --config ../../../.golangci.yml

##@ Check a change

# verify changes no file of the tree.
.PHONY: verify
verify: verify-format verify-modules verify-generated verify-charts verify-config verify-bundle verify-leftovers verify-wording verify-commits lint verify-vulnerabilities ## Check formats, modules, generated files, charts, config, code and wording.

.PHONY: verify-format
verify-format: $(BIN)/golangci-lint
	@echo "checking formats ..."
	@$(BIN)/golangci-lint fmt --diff
	@cd test/cluster && ../../$(BIN)/golangci-lint fmt --diff --config ../../.golangci.yml
	@cd test/tools/vsphere && ../../../$(BIN)/golangci-lint fmt --diff --config ../../../.golangci.yml
	@cd test/tools/coredns && ../../../$(BIN)/golangci-lint fmt --diff --config ../../../.golangci.yml

MODULES := . test test/cluster test/tools/cni test/tools/containerd test/tools/coredns test/tools/d2 test/tools/goreleaser test/tools/gotestsum test/tools/lint test/tools/postgres-exporter test/tools/sbom test/tools/vale test/tools/vsphere test/tools/vuln

.PHONY: verify-modules
verify-modules:
	@for module in $(MODULES); do \
	  echo "checking $$module/go.mod ..."; \
	  (cd $$module && go mod tidy -diff) || exit 1; \
	done

.PHONY: verify-generated
verify-generated: build
	@echo "checking that generated files are up to date ..."
	@$(BIN)/chartwright generate --check --strict
	@$(GO_TEST) $(REFERENCE) >/dev/null || $(GO_TEST) $(REFERENCE)
	@cd test && { $(GO_TEST) $(CHART_TEMPLATES) >/dev/null || $(GO_TEST) $(CHART_TEMPLATES); }

.PHONY: verify-charts
verify-charts: build
	@echo "checking charts ..."
	@$(BIN)/chartwright lint --strict --watches-file watches.yaml

.PHONY: verify-config
verify-config: $(BIN)/kube/kubectl
	@echo "checking that every folder of config builds ..."
	@for file in $$(find config -name kustomization.yaml); do \
	  $(BIN)/kube/kubectl kustomize $${file%/*} >/dev/null || exit 1; \
	done

.PHONY: verify-bundle
verify-bundle: build
	@echo "checking that an OLM bundle can be built ..."
	@$(BIN)/chartwright bundle --dry-run --strict $(BUNDLE_FLAGS) >/dev/null

.PHONY: verify-leftovers
verify-leftovers:
	@echo "checking for notes of unfinished work ..."
	@! git grep -nE 'TOD[O]|FIXM[E]'

# Vale checks the comments of Go code and the pages in WORDING against the rules in
# test/tools/vale/styles. Its parser of Go needs a C compiler.
WORDING := $(shell git ls-files '*.go' 2>/dev/null) README.md CONTRIBUTING.md SECURITY.md $(wildcard charts/*/README.md)

.PHONY: verify-wording
verify-wording: ## Check the wording of comments and pages with Vale.
	@if ! command -v $${CC:-cc} >/dev/null; then \
	  echo "NOT CHECKED: the wording of comments and pages. Vale needs a C compiler: install one, or set CC."; \
	elif ! (cd test/tools/vale && go mod download); then \
	  echo "NOT CHECKED: the wording of comments and pages. The modules of Vale could not be downloaded."; \
	else \
	  $(MAKE) --no-print-directory $(BIN)/vale && echo "checking the wording ..." && \
	  printf '%s\n' $(WORDING) | xargs -d '\n' $(BIN)/vale --output=line; \
	fi

# Commit messages follow CONTRIBUTING.md after this commit.
COMMITS_BASE := d9a2db030d23be99ac107f5056ce396801454fce
COMMITS_FORM := ^[a-z][a-z0-9/, _.-]*: [a-z][a-z-]* .+
COMMITS_NOT  := .{73}|: (tell|say|let|take|hold|see|look|keep|give)s? |\.$$

.PHONY: verify-commits
verify-commits: ## Check the subjects of commit messages.
	@if ! git merge-base --is-ancestor $(COMMITS_BASE) HEAD 2>/dev/null; then \
	  echo "NOT CHECKED: commit messages. The history after $(COMMITS_BASE) is not available."; exit 0; \
	fi; \
	echo "checking commit messages ..."; \
	subjects=$$(git log --no-merges --format=%s $(COMMITS_BASE)..HEAD); \
	wrong=$$(echo "$$subjects" | grep -v '^$$' | { grep -vE '$(COMMITS_FORM)'; echo "$$subjects" | grep -E '$(COMMITS_NOT)'; }); \
	[ -z "$$wrong" ] || { \
	  echo "Rewrite these subjects as \"area: imperative verb, object\" in at most 72 characters (CONTRIBUTING.md):"; \
	  echo "$$wrong"; exit 1; }

# The vulnerability database is on the network. If it cannot be reached, the other
# checks still count. A scan of a small module finds out whether it can be reached.
GOVULNDB ?= https://vuln.go.dev

.PHONY: verify-vulnerabilities
verify-vulnerabilities: $(BIN)/govulncheck ## Check for known vulnerabilities in the database GOVULNDB.
	@echo "checking for known vulnerabilities ..."
	@said=$$($(BIN)/govulncheck -db '$(GOVULNDB)' -scan module 2>&1); result=$$?; \
	case $$result in \
	0 | 3) $(BIN)/govulncheck -db '$(GOVULNDB)' ./cmd/chartwright ;; \
	*) echo "$$said" | grep -qE 'dial tcp|proxyconnect|Client.Timeout|TLS handshake|HTTP GET .* returned unexpected status' || { echo "$$said"; exit $$result; }; \
	  echo "NOT CHECKED for known vulnerabilities: the database $(GOVULNDB) cannot be reached." \
	    "Set GOVULNDB to one that can, such as a mirror or file:///a/folder." ;; \
	esac

##@ Change the code

# The tests that generate parts of docs/ from the code.
REFERENCE := -run '^TestDocs' ./cmd/chartwright ./internal/api ./internal/chart/crd ./internal/inventory/health ./internal/authoring/lint ./internal/authoring/migrate

# The test that generates the templates of deploy/chart from config/.
CHART_TEMPLATES := -run '^TestTemplates_UpToDate$$' ./operatorchart

.PHONY: generate
generate: build ## Regenerate CRDs, roles, missing samples, the operator's chart and the reference docs.
	@$(BIN)/chartwright generate --strict
	@cd test && go test $(CHART_TEMPLATES) -update >/dev/null
	@go test $(REFERENCE) -update >/dev/null

.PHONY: manifests
manifests: generate ## Alias of generate, as in other projects.

# Each picture has a light and a dark color scheme, and ends with the digest of its
# source, which a test compares.
D2_FLAGS := --layout dagre --theme 0 --dark-theme 200 --scale 0.8 --pad 10 --omit-version --no-xml-tag

.PHONY: pictures
pictures: $(BIN)/d2 ## Draw the pictures of the docs (docs/images/*.svg) from their sources (*.d2).
	@for source in docs/images/*.d2; do \
	  { $(BIN)/d2 $(D2_FLAGS) $$source - && echo "<!-- sha256:$$(sha256sum <$$source | cut -d' ' -f1) -->"; } >$${source%.d2}.svg || exit 1; \
	done

##@ Install and deploy

.PHONY: install
install: $(if $(filter existing,$(CLUSTER)),$(CLUSTER_PROGRAMS),cluster-up) ## Install the CRDs (starts a local cluster if none runs).
	@$(KUBECTL) apply --server-side --force-conflicts -k config/crd

.PHONY: uninstall
uninstall: $(CLUSTER_PROGRAMS) ## Delete the custom resources, then the CRDs.
	$(if $(filter existing,$(CLUSTER)),,@$(BIN)/cluster status --dir $(CLUSTER) >/dev/null)
	@$(call delete-resources,$(KUBECTL),--all-namespaces)
	@$(KUBECTL) delete --ignore-not-found -k config/crd

# The image contains a release binary and nothing else: see Dockerfile and the
# section Release. "make image" builds it without a container engine.
IMAGE_PLATFORM ?= linux/$(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)

# The time of the commit, so that the same sources produce the same image.
IMAGE_FLAGS = --name $(IMG) --version $(VERSION) $(addprefix --revision ,$(COMMIT)) $(addprefix --created ,$(shell git log -1 --format=%cI 2>/dev/null)) \
  $(foreach platform,$(PLATFORMS),--binary $(platform)=$(call release-binary,$(platform)))

.PHONY: image
image: $(BIN)/image $(foreach platform,$(PLATFORMS),$(call release-binary,$(platform))) ## Write the image IMG for PLATFORMS to dist/image, without a container engine.
	@$(BIN)/image layout --out dist/image $(IMAGE_FLAGS)
	@echo "dist/image is the image $(IMG)"

.PHONY: image-check
image-check: $(BIN)/image ## Check dist/image: platforms, user, command, labels, size, no shell.
	@$(BIN)/image check --layout dist/image --platform $(subst $(space),$(comma),$(strip $(PLATFORMS)))

.PHONY: image-test
image-test: image image-check ## Run dist/image on a cluster with one real node, and upgrade it to another build.
	@$(MAKE) --no-print-directory test-node NODE_TEST=^TestOperator_ OPERATOR_LAYOUT=dist/image

.PHONY: image-push
image-push: $(BIN)/image ## Push dist/image as IMG, with the login of docker or podman.
	@$(BIN)/image push --layout dist/image $(IMG)

.PHONY: docker-build
docker-build: $(call release-binary,$(IMAGE_PLATFORM)) ## Build the image IMG for IMAGE_PLATFORM.
	$(CONTAINER_TOOL) build --platform $(IMAGE_PLATFORM) --tag $(IMG) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: docker-buildx
docker-buildx: $(foreach platform,$(PLATFORMS),$(call release-binary,$(platform))) ## Build and push the image IMG for all PLATFORMS.
	$(CONTAINER_TOOL) buildx build --platform $(subst $(space),$(comma),$(strip $(PLATFORMS))) --tag $(IMG) --push .

# The local cluster cannot run images, so deploy and undeploy use the cluster of
# $KUBECONFIG.
DEPLOY_KUBECTL := $(or $(OWN_KUBECTL),$(BIN)/kube/kubectl)

# The folder below config/ to deploy: default; namespaced, which requires that its
# namespace and the CRDs exist; or a folder that you added.
DEPLOY_CONFIG ?= default

# The overlay is written for each deployment, so that no file under version control
# changes.
define OVERLAY
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../../config/$(DEPLOY_CONFIG)]
patches:
  - target: {kind: Deployment, name: chartwright-controller-manager}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/image, value: "$(IMG)"}
      - {op: add, path: /spec/template/spec/containers/0/imagePullPolicy, value: "$(PULL_POLICY)"}
endef
export OVERLAY

.PHONY: overlay
overlay:
	@mkdir -p $(BIN)/deploy && echo "$$OVERLAY" >$(BIN)/deploy/kustomization.yaml

.PHONY: dist
dist: overlay $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Write dist/install.yaml with DEPLOY_CONFIG (default) and the image IMG.
	@mkdir -p dist && $(DEPLOY_KUBECTL) kustomize $(BIN)/deploy >dist/install.yaml
	@echo "dist/install.yaml runs the image $(IMG)"

# The version of the chart is that of the release. Other builds have a version that
# is older than every release.
CHART_VERSION ?= $(or $(patsubst v%,%,$(filter v%,$(VERSION))),0.0.0-g$(VERSION))
CHART_HELM    := $(or $(OWN_HELM),$(BIN)/helm)

.PHONY: chart
chart: $(filter $(BIN)/%,$(CHART_HELM)) ## Write the operator's Helm chart to dist: CHART_VERSION. It runs the image of VERSION.
	@$(CHART_HELM) package deploy/chart --version $(CHART_VERSION) --app-version $(VERSION) --destination dist

.PHONY: deploy
deploy: overlay $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Deploy DEPLOY_CONFIG (default) with the image IMG and PULL_POLICY.
	@$(DEPLOY_KUBECTL) apply --server-side --force-conflicts -k $(BIN)/deploy
	@$(DEPLOY_KUBECTL) rollout status --namespace chartwright-system --timeout 3m deployment/chartwright-controller-manager

.PHONY: undeploy
undeploy: $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Delete the custom resources, the operator and, by default, the CRDs.
	@$(call delete-resources,$(DEPLOY_KUBECTL),$(if $(filter namespaced,$(DEPLOY_CONFIG)),--namespace chartwright-system,--all-namespaces))
	@$(DEPLOY_KUBECTL) delete --ignore-not-found -k config/$(DEPLOY_CONFIG)

# Deletes the custom resources while the operator still runs and can uninstall
# their releases: without the operator, their finalizers would block the deletion.
# The second argument is --all-namespaces or --namespace NAME.
define delete-resources
echo "deleting the custom resources (the operator must be running) ..."; \
for crd in $$($(1) get --ignore-not-found --no-headers -o custom-columns=NAME:.metadata.name,SCOPE:.spec.scope -k config/crd | \
    awk '"$(2)" == "--all-namespaces" || $$2 == "Namespaced" {print $$1}'); do \
  $(1) delete $${crd} --all $(2) --timeout 2m || { \
    echo "Some custom resources still exist, so nothing else was deleted. Check that the operator runs, and read its log."; exit 1; }; \
done
endef

##@ Release

# The same commit, VERSION and Go toolchain result in the same binary, on every
# machine. The go command downloads the toolchain that go.mod names if another
# version is installed, and verifies it against the checksum database. .goreleaser.yaml
# has the same settings for the files of a release.
RELEASE_TOOLCHAIN := GOTOOLCHAIN=go$(shell sed -n 's/^go //p' go.mod)
VERSION_VARIABLES := github.com/chartwright/chartwright/internal/api
RELEASE_BUILD     := $(RELEASE_TOOLCHAIN) GOFLAGS=-trimpath GOWORK=off GOAMD64=v1 GOARM64=v8.0 \
  go build -buildvcs=false -ldflags '$(LDFLAGS) -X $(VERSION_VARIABLES).Version=$(VERSION) -X $(VERSION_VARIABLES).Commit=$(COMMIT)'

.PHONY: always
always:

dist/%/chartwright: always
	@echo "building the release binary for $* (several minutes the first time) ..."
	@mkdir -p $(@D)
	@GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(RELEASE_BUILD) -o $@ ./cmd/chartwright

# GoReleaser runs cyclonedx-gomod, which writes the SBOMs, and cosign from the PATH.
# On a busy machine the builds take more than its default timeout of one hour.
GORELEASER := PATH="$(CURDIR)/$(BIN):$$PATH" $(RELEASE_TOOLCHAIN) $(BIN)/goreleaser release --clean --timeout 3h

.PHONY: release-snapshot
release-snapshot: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod $(BIN)/kube/kubectl ## Build the files of a release in dist/release without publishing them, and check them.
	@echo "building the program for 6 platforms (about 20 minutes the first time) ..."
	@$(BIN)/goreleaser check
	@$(GORELEASER) --snapshot --skip sign
	@cd test && CHARTWRIGHT_RELEASE=$(CURDIR)/dist/release $(GO_TEST) -v -run '^TestSnapshot' ./supplychain

.PHONY: release
release: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod ## Build, sign and publish the release of the tag at HEAD; the release workflow runs it.
	@$(GORELEASER)

# The second build runs in a copy of the sources with an empty build cache.
.PHONY: verify-reproducible
verify-reproducible: $(call release-binary,$(IMAGE_PLATFORM)) ## Check that two release builds are identical (several minutes).
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && \
	mkdir -p "$$copy/another/folder" && git ls-files -z | xargs -0 cp --parents -t "$$copy/another/folder" && \
	GOCACHE="$$copy/cache" $(MAKE) --no-print-directory -C "$$copy/another/folder" VERSION=$(VERSION) COMMIT=$(COMMIT) $< && \
	cmp $< "$$copy/another/folder/$<" && echo "both builds are identical: $$(sha256sum <$<)"

##@ Operator Lifecycle Manager

# A bundle belongs to one version (the tag, if there is one), so it is generated
# and not committed. See docs/guides/olm.md.
BUNDLE_VERSION  ?= $(or $(patsubst v%,%,$(shell git describe --tags --exact-match 2>/dev/null)),0.0.1)
BUNDLE_IMG      ?= chartwright-bundle:v$(BUNDLE_VERSION)
CHANNELS        ?= stable
DEFAULT_CHANNEL ?=
REPLACES        ?=

# The time of the commit, so that the same sources produce the same bundle.
BUNDLE_FLAGS = --version $(BUNDLE_VERSION) --image $(IMG) --channels $(CHANNELS) \
  $(if $(DEFAULT_CHANNEL),--default-channel $(DEFAULT_CHANNEL)) $(if $(REPLACES),--replaces $(REPLACES)) \
  $(addprefix --created-at ,$(shell git log -1 --format=%cI 2>/dev/null))

.PHONY: bundle
bundle: build ## Generate the bundle of BUNDLE_VERSION: CHANNELS, DEFAULT_CHANNEL, REPLACES.
	@$(BIN)/chartwright bundle $(BUNDLE_FLAGS)

.PHONY: bundle-build
bundle-build: bundle ## Build the bundle image BUNDLE_IMG.
	$(CONTAINER_TOOL) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the bundle image BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

##@ Local cluster

.PHONY: cluster-up
cluster-up: cluster-binaries ## Start a local Kubernetes cluster.
	@$(BIN)/cluster up --dir $(LOCAL_CLUSTER)

.PHONY: cluster-down
cluster-down: $(BIN)/cluster ## Stop the local cluster.
	@$(BIN)/cluster down --dir $(LOCAL_CLUSTER)

.PHONY: node-up
node-up: node-requirements node-binaries node-images ## Start a local cluster with one real node, which runs containers.
	@$(BIN)/cluster up --dir $(NODE_CLUSTER) --containers --images $(BIN)/images --timeout 5m

.PHONY: node-down
node-down: $(BIN)/cluster ## Stop the cluster with the real node.
	@$(BIN)/cluster down --dir $(NODE_CLUSTER)

.PHONY: cluster-status
cluster-status: $(BIN)/cluster ## Show the status of each component of the local cluster.
	@$(BIN)/cluster status --dir $(LOCAL_CLUSTER)

##@ Local cluster

# The flags for a build with the given version.
chartwright-flags = -buildvcs=$(if $(GIT_VERSION),true,false) -ldflags '$(LDFLAGS) -X github.com/chartwright/chartwright/internal/api.Version=$(1)'

$(BIN)/chartwright: go.mod go.sum $(call sources,*.go cmd internal charts watches.yaml)
	@mkdir -p $(@D)
	@$(call building,chartwright (about 2 minutes the first time)) $(call chartwright-flags,$(VERSION)) -o $@ ./cmd/chartwright

# The tests with containers upgrade the operator to it.
$(BIN)/node/chartwright-next: $(BIN)/chartwright
	@mkdir -p $(@D)
	@$(call building,the next chartwright) $(call chartwright-flags,$(VERSION)-next) -o $@ ./cmd/chartwright

# The plugin is the same program under the name that kubectl looks up, and under
# the name that kubectl runs for completions.
$(BIN)/kubectl-chartwright: | $(BIN)/chartwright
	@ln -sfn chartwright $@
	@ln -sfn chartwright $(@D)/kubectl_complete-chartwright

$(BIN)/local: go.mod go.sum test/go.mod test/go.sum $(call sources,*.go internal test/local watches.yaml)
	@mkdir -p $(@D)
	@cd test && $(call building,the program for make run) -ldflags '$(LDFLAGS)' -o ../$@ ./local

$(BIN)/image: test/go.mod test/go.sum $(call sources,test/image)
	@mkdir -p $(@D)
	@cd test && $(call building,the program for images) -ldflags '$(LDFLAGS)' -o ../$@ ./image

$(BIN)/bench: go.mod go.sum test/go.mod test/go.sum $(call sources,test/bench)
	@mkdir -p $(@D)
	@cd test && $(call building,the program for make bench) -ldflags '$(LDFLAGS)' -o ../$@ ./bench

# controller-runtime's envtest can use the folder: KUBEBUILDER_ASSETS=bin/kube
.PHONY: cluster-binaries
cluster-binaries: $(BIN)/kube/.control-plane $(BIN)/kube/etcd $(BIN)/kube/stages/.complete $(BIN)/kwok $(BIN)/helm $(BIN)/cluster ## Build the programs that the tests need.

# Kubernetes is downloaded if all checksums are pinned and the server can be reached,
# and built otherwise (auto). Its own server does not have etcd.
KUBE_BINARIES  ?= auto
KUBE_SERVER    ?= https://dl.k8s.io/release
KUBE_CHECKSUMS := test/cluster/kubernetes.sha512
CONTROL_PLANE  := kube-apiserver kube-controller-manager kube-scheduler kubectl
NODE_PROCESSES := kube-proxy kubelet
ETCD           := go.etcd.io/etcd/server/v3
KWOK           := sigs.k8s.io/kwok/cmd/kwok

# Without pinned checksums, there is nothing to download.
KUBE_BUILD := $(or $(filter build,$(KUBE_BINARIES)),$(if $(shell grep -v '^\#' $(KUBE_CHECKSUMS)),,$(filter auto,$(KUBE_BINARIES))))
DOWNLOAD   := $(if $(KUBE_BUILD),,$(BIN)/download)

# The exit code is 3 if the programs must be built.
download-flags = -mode '$(KUBE_BINARIES)' -version $(KUBERNETES_VERSION) -server '$(KUBE_SERVER)' \
  -checksums $(KUBE_CHECKSUMS) -to $(BIN)/kube
kube-download  = $(if $(KUBE_BUILD),(exit 3),$(DOWNLOAD) $(download-flags) $(1))

VERSION_PACKAGE := k8s.io/component-base/version
kube-version     = $(subst ., ,$(KUBERNETES_VERSION:v%=%))
KUBE_LDFLAGS    := $(LDFLAGS) \
  -X $(VERSION_PACKAGE).gitVersion=$(KUBERNETES_VERSION) \
  -X $(VERSION_PACKAGE).gitMajor=$(word 1,$(kube-version)) \
  -X $(VERSION_PACKAGE).gitMinor=$(word 2,$(kube-version)) \
  -X $(VERSION_PACKAGE).gitTreeState=clean

# A built program contains the control plane and kubectl: its name selects the
# component. One program links several times faster than four.
$(BIN)/kube/.control-plane: test/cluster/go.mod test/cluster/go.sum $(KUBE_CHECKSUMS) $(wildcard test/cluster/cmd/kube/*.go) | $(DOWNLOAD)
	@mkdir -p $(@D) && find $(@D) -maxdepth 1 -type l -delete
	@$(call kube-download,$(CONTROL_PLANE)) || { [ $$? = 3 ] && cd test/cluster && \
	  $(call building,Kubernetes $(KUBERNETES_VERSION) (about 3 minutes the first time)) -ldflags '$(KUBE_LDFLAGS)' -o ../../$(@D)/kube ./cmd/kube && \
	  for program in $(CONTROL_PLANE); do ln -sfn kube ../../$(@D)/$$program || exit 1; done; }
	@touch $@

$(CONTROL_PLANE:%=$(BIN)/kube/%): | $(BIN)/kube/.control-plane ;

# Downloads while another program is built. A failure is reported when the programs
# are needed.
.PHONY: download-kubernetes
download-kubernetes: | $(DOWNLOAD)
	@$(if $(KUBE_BUILD),cd test/cluster && go list -deps ./cmd/... $(ETCD) $(KWOK) >/dev/null 2>&1, \
	  $(MAKE) --no-print-directory --silent KUBE_BINARIES=download $(BIN)/kube/.control-plane 2>/dev/null) || true

.PHONY: pin-kubernetes
pin-kubernetes: $(BIN)/download ## Update the checksums of Kubernetes from KUBE_SERVER, after a change of its version.
	@$(BIN)/download $(download-flags) -pin $(CONTROL_PLANE) $(NODE_PROCESSES)
	@git --no-pager diff --stat -- $(KUBE_CHECKSUMS)

$(BIN)/kube/.node: test/cluster/go.mod test/cluster/go.sum $(KUBE_CHECKSUMS) | $(BIN)/kube/.control-plane
	@$(call kube-download,$(NODE_PROCESSES)) || { [ $$? = 3 ] && cd test/cluster && \
	  $(call building,kubelet and kube-proxy $(KUBERNETES_VERSION)) -ldflags '$(KUBE_LDFLAGS)' -o ../../$(@D)/ $(NODE_PROCESSES:%=k8s.io/kubernetes/cmd/%); }
	@touch $@

# These programs share packages with the control plane, which are compiled once if it is
# built before them.
$(BIN)/kube/etcd: test/cluster/go.mod test/cluster/go.sum | $(BIN)/kube/.control-plane
	@cd test/cluster && $(call building,etcd $(ETCD_VERSION)) -ldflags '$(LDFLAGS)' -o ../../$@ $(ETCD)

$(BIN)/download: test/cluster/go.mod $(call sources,test/cluster/cmd/download test/cluster/internal/download)
	@mkdir -p $(@D)
	@cd test/cluster && $(call building,the download command) -ldflags '$(LDFLAGS)' -o ../../$@ ./cmd/download

$(BIN)/kwok: test/cluster/go.mod test/cluster/go.sum | $(BIN)/kube/.control-plane
	@cd test/cluster && $(call building,kwok $(KWOK_VERSION)) -ldflags '$(LDFLAGS) -X sigs.k8s.io/kwok/pkg/consts.Version=$(KWOK_VERSION)' -o ../../$@ $(KWOK)

# The stages (behavior of nodes, pods and volumes) come from kwok's own module.
STAGES := pod/fast node/fast node/heartbeat-with-lease volume/fast

$(BIN)/kube/stages/.complete: test/cluster/go.mod test/cluster/go.sum
	@echo "copying the stages of kwok $(KWOK_VERSION) ..."
	@rm -rf $(@D) && mkdir -p $(@D)
	@cd test/cluster && go mod download sigs.k8s.io/kwok
	@from=$$(cd test/cluster && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage && \
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

$(BIN)/helm: test/go.mod test/go.sum
	@mkdir -p $(@D)
	@cd test && $(call building,Helm $(HELM_VERSION)) -ldflags '$(LDFLAGS) -X helm.sh/helm/v3/internal/version.version=$(HELM_VERSION)' -o ../$@ helm.sh/helm/v3/cmd/helm

VSPHERE_SOURCES := $(addprefix test/tools/vsphere/,go.mod go.sum) $(wildcard test/tools/vsphere/*/*.go)

$(BIN)/govc: $(VSPHERE_SOURCES)
	@mkdir -p $(@D)
	@cd test/tools/vsphere && $(call building,govc $(GOVMOMI_VERSION) (about 1 minute the first time)) -ldflags '$(LDFLAGS) -X github.com/vmware/govmomi/cli/flags.BuildVersion=$(GOVMOMI_VERSION)' -o ../../../$@ ./govc

$(BIN)/vcsim: $(VSPHERE_SOURCES)
	@mkdir -p $(@D)
	@cd test/tools/vsphere && $(call building,vcsim $(GOVMOMI_VERSION) (about 1 minute the first time)) -ldflags '$(LDFLAGS)' -o ../../../$@ ./vcsim

$(BIN)/cluster: test/cluster/go.mod test/cluster/go.sum $(call sources,test/cluster/cmd/cluster test/cluster/internal) | $(BIN)/kube/.control-plane
	@mkdir -p $(@D)
	@cd test/cluster && $(call building,the cluster command (about 1 minute the first time)) -ldflags '$(LDFLAGS)' -o ../../$@ ./cmd/cluster

$(BIN)/postgres_exporter: test/tools/postgres-exporter/go.mod test/tools/postgres-exporter/go.sum
	@mkdir -p $(@D)
	@cd test/tools/postgres-exporter && $(call building,postgres_exporter $(EXPORTER_VERSION) (about 1 minute the first time)) -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/prometheus-community/postgres_exporter/cmd/postgres_exporter

# The programs of a node that runs containers: see test-node.
NODE_PROGRAMS := $(BIN)/node/containerd $(BIN)/node/cni/.complete $(BIN)/node/coredns

.PHONY: node-binaries
node-binaries: $(BIN)/kube/.node $(BIN)/kube/etcd $(NODE_PROGRAMS) $(BIN)/cluster $(BIN)/govc

# Only the features that the node uses: no other snapshotters, no tracing.
CONTAINERD_TAGS := no_aufs,no_btrfs,no_devmapper,no_tracing,no_zfs
CONTAINERD      := github.com/containerd/containerd/v2

$(BIN)/node/containerd: test/tools/containerd/go.mod test/tools/containerd/go.sum
	@mkdir -p $(@D)
	@cd test/tools/containerd && $(call building,containerd $(CONTAINERD_VERSION) (about 2 minutes the first time)) -tags $(CONTAINERD_TAGS) -ldflags '$(LDFLAGS) -X $(CONTAINERD)/version.Version=$(CONTAINERD_VERSION)' -o ../../../$(@D)/ \
	  $(CONTAINERD)/cmd/containerd-shim-runc-v2 $(CONTAINERD)/cmd/ctr $(CONTAINERD)/cmd/containerd

CNI := github.com/containernetworking/plugins/plugins

$(BIN)/node/cni/.complete: test/tools/cni/go.mod test/tools/cni/go.sum
	@mkdir -p $(@D)
	@cd test/tools/cni && $(call building,the CNI plugins $(CNI_VERSION)) -ldflags '$(LDFLAGS)' -o ../../../$(@D)/ \
	  $(CNI)/main/bridge $(CNI)/main/loopback $(CNI)/ipam/host-local $(CNI)/meta/portmap
	@touch $@

$(BIN)/node/coredns: test/tools/coredns/go.mod test/tools/coredns/go.sum test/tools/coredns/main.go
	@mkdir -p $(@D)
	@cd test/tools/coredns && $(call building,CoreDNS $(COREDNS_VERSION) (about 2 minutes the first time)) -ldflags '$(LDFLAGS)' -o ../../../$@ .

$(BIN)/golangci-lint: test/tools/lint/go.mod test/tools/lint/go.sum
	@mkdir -p $(@D)
	@cd test/tools/lint && $(call building,golangci-lint $(GOLANGCI_LINT_VERSION) (about 2 minutes the first time)) -ldflags '$(LDFLAGS) -X main.version=$(GOLANGCI_LINT_VERSION:v%=%)' -o ../../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/vale: test/tools/vale/go.mod test/tools/vale/go.sum
	@mkdir -p $(BIN)
	@cd test/tools/vale && CGO_ENABLED=1 CGO_CFLAGS=-w $(call building,Vale $(VALE_VERSION) (about 1 minute the first time)) -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/errata-ai/vale/v3/cmd/vale

$(BIN)/govulncheck: test/tools/vuln/go.mod test/tools/vuln/go.sum
	@mkdir -p $(@D)
	@cd test/tools/vuln && $(call building,govulncheck $(GOVULNCHECK_VERSION)) -ldflags '$(LDFLAGS)' -o ../../../$@ golang.org/x/vuln/cmd/govulncheck

$(BIN)/gotestsum: test/tools/gotestsum/go.mod test/tools/gotestsum/go.sum
	@mkdir -p $(@D)
	@cd test/tools/gotestsum && $(call building,gotestsum $(GOTESTSUM_VERSION)) -ldflags '$(LDFLAGS)' -o ../../../$@ gotest.tools/gotestsum

$(BIN)/d2: test/tools/d2/go.mod test/tools/d2/go.sum
	@mkdir -p $(@D)
	@cd test/tools/d2 && $(call building,D2 $(D2_VERSION) (about 1 minute the first time)) -ldflags '$(LDFLAGS)' -o ../../../$@ oss.terrastruct.com/d2

$(BIN)/cyclonedx-gomod: test/tools/sbom/go.mod test/tools/sbom/go.sum
	@mkdir -p $(@D)
	@cd test/tools/sbom && $(call building,cyclonedx-gomod $(CYCLONEDX_VERSION)) -trimpath -ldflags '$(LDFLAGS)' -o ../../../$@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(BIN)/goreleaser: test/tools/goreleaser/go.mod test/tools/goreleaser/go.sum
	@mkdir -p $(@D)
	@cd test/tools/goreleaser && $(call building,GoReleaser $(GORELEASER_VERSION) (about 5 minutes the first time)) -ldflags '$(LDFLAGS) -X main.version=$(GORELEASER_VERSION)' -o ../../../$@ github.com/goreleaser/goreleaser/v2

##@ Local cluster

.PHONY: clean
clean: ## Stop and remove the local clusters, and remove all built files.
	@for cluster in .cluster .cluster-demo .cluster-bench $(TEST_CLUSTER) $(NODE_CLUSTER); do \
	  [ ! -x $(BIN)/cluster ] || $(BIN)/cluster down --dir $$cluster >/dev/null || exit 1; \
	  rm -rf $$cluster; \
	done
	@rm -rf $(BIN) dist bundle bundle.Dockerfile
