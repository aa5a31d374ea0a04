# `make` without a target lists the targets by task. Requirements: Go and make.

BIN := bin

# The cluster that install, uninstall, run and demo use: the folder of a local
# cluster, or "existing" for the cluster of $KUBECONFIG.
CLUSTER       ?= .cluster
LOCAL_CLUSTER := $(if $(filter existing,$(CLUSTER)),.cluster,$(CLUSTER))
# The demo uses a local cluster of its own.
DEMO_CLUSTER := $(if $(filter existing,$(CLUSTER)),existing,.cluster-demo)

# The major version of Helm in the operator, 3 or 4, for all targets that build or check it.
HELM     ?= 3
HELM_TAG := $(if $(filter 4,$(HELM)),helm4)

# The version that the binary reports, and the image to build and deploy.
GIT_VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
VERSION     ?= $(or $(GIT_VERSION),dev)
COMMIT      ?= $(shell git rev-parse HEAD 2>/dev/null)
IMG         ?= ghcr.io/chartwright/chartwright:$(VERSION)$(addprefix -,$(HELM_TAG))
PULL_POLICY ?= IfNotPresent
CONTAINER_TOOL ?= docker

# Build, test and lint use the same settings, so that they share the build cache.
# This saves minutes on the first run. -trimpath would change the settings, so
# only release binaries use it.
export CGO_ENABLED := 0

# Nothing reads debug information (DWARF): compiling without it takes an eighth less time.
# Stack traces and profiles do not need it.
NO_DWARF       := -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(NO_DWARF) -tags=helm4,$(GOFLAGS)) $(NO_DWARF) $(addprefix -tags=,$(HELM_TAG)))

# The compiler collects garbage only if it needs more than 1.5 GB: this saves a
# quarter of the time. The setting must not reach programs that tests measure.
COMPILER := GOGC=off GOMEMLIMIT=1536MiB

# Programs have no symbol table either: they are smaller and link faster.
BUILD   := env $(COMPILER) go build -v -buildvcs=false
LDFLAGS := -s -w

# The source files of a program.
sources = $(shell find $(1) -type f ! -name '*_test.go' ! -path '*/testdata/*')

# The platforms of a release, and the release binary of one platform.
PLATFORMS     ?= linux/amd64 linux/arm64
release-binary = dist/$(subst /,-,$(1))/chartwright

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
# Every target that is no file.
.PHONY: $(shell sed -nE 's/^([a-z][a-z0-9-]*):.*/\1/p' Makefile)

# The lines "##@ TASK" group the targets. A task may occur several times.
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { task = substr($$0, 5); if (!(task in targets)) order[++tasks] = task } \
	  /^[a-zA-Z0-9_-]+:.*## / { targets[task] = targets[task] sprintf("  %-22s %s\n", $$1, $$2) } \
	  END { for (i = 1; i <= tasks; i++) if (targets[order[i]]) printf("%s\n%s\n", order[i], targets[order[i]]) }' \
	  $(firstword $(MAKEFILE_LIST))

##@ Try it

run: run-programs ## Start a cluster, the operator and the samples; run until Ctrl-C.
	@$(BIN)/local run --cluster $(CLUSTER)

demo: run-programs ## Show install, edit, drift correction and deletion, then exit.
	@$(BIN)/local demo --cluster $(DEMO_CLUSTER)

# The download of Kubernetes or of its sources overlaps with the build of the operator.
run-programs:
	@$(MAKE) --no-print-directory -j2 build $(if $(filter cluster-binaries,$(CLUSTER_PROGRAMS)),fetch-kubernetes)
	@$(MAKE) --no-print-directory -j2 $(BIN)/local $(CLUSTER_PROGRAMS)

##@ Change the code

build: $(BIN)/chartwright $(BIN)/kubectl-chartwright ## Build the operator (one static binary) and its kubectl plugin.

# "make lint" runs vet. The tests themselves do not get the settings of the compiler.
# The timeout is generous: on a busy machine the tests take several times as long.
TEST_FLAGS := -vet=off -exec 'env -u GOGC -u GOMEMLIMIT' -count=1 -timeout 60m
GO_TEST    := env $(COMPILER) go test $(TEST_FLAGS)

# Runs all tests of packages, and prints those that failed or were skipped at the end.
REPORT_TESTS := env $(COMPILER) $(CURDIR)/$(BIN)/gotestsum --format standard-quiet -- $(TEST_FLAGS)

# What tests of the whole program need.
export CHARTWRIGHT_BINARY := $(CURDIR)/$(BIN)/chartwright
export KUBEBUILDER_ASSETS := $(CURDIR)/$(BIN)/kube

# The go command runs only tests that a change can affect, and prints "(cached)" for
# the others. It does not notice changes of files that another module reads, so tests
# below test/ always run. Tests that need an API server are skipped.
UNIT_TEST := go test -vet=off -short -ldflags '$(LDFLAGS)'

test-unit: ## Run the unit tests, without a cluster.
	@$(UNIT_TEST) ./...
	@cd test && $(UNIT_TEST) -count=1 ./architecture ./docs

# The folder below test/ with the test.
PACKAGE ?= e2e

test-one: build cluster-binaries ## Run one end-to-end test on its own cluster: TEST (its name), PACKAGE (e2e).
	@[ -n '$(TEST)' ] || { echo "Name a test: make test-one TEST=TestEdit_SpecCreatesOneRevision"; exit 1; }
	@cd test && $(GO_TEST) -v ./$(PACKAGE) -run '^$(TEST)$$'

# test/cluster/cmd/kube is left out: it imports all of Kubernetes, which takes 6
# minutes to analyze. verify-format checks its format.
LINT := $(CURDIR)/$(BIN)/golangci-lint run --allow-serial-runners --config $(CURDIR)/.golangci.yml

lint: $(BIN)/golangci-lint ## Lint the code of every module.
	@for module in . test test/tools/vsphere test/tools/coredns; do (cd $$module && $(LINT)) || exit 1; done
	@cd test/cluster && $(LINT) ./internal/... ./cmd/cluster ./cmd/download

# The tests that generate parts of docs/ from the code.
REFERENCE := -run '^TestDocs' ./cmd/chartwright ./internal/api ./internal/chart/crd ./internal/inventory/health ./internal/authoring/lint ./internal/authoring/migrate

# The test that generates the templates of deploy/chart from config/.
CHART_TEMPLATES := -run '^TestTemplates_UpToDate$$' ./operatorchart

generate: build ## Regenerate CRDs, roles, missing samples, the operator's chart and the reference docs.
	@$(BIN)/chartwright generate --strict
	@cd test && go test $(CHART_TEMPLATES) -update >/dev/null
	@go test $(REFERENCE) -update >/dev/null

# Each picture has a light and a dark color scheme, and ends with the digest of its
# source, which a test compares.
D2_FLAGS := --layout dagre --theme 0 --dark-theme 200 --scale 0.8 --pad 10 --omit-version --no-xml-tag

pictures: $(BIN)/d2 ## Draw the pictures of the docs (docs/images/*.svg) from their sources (*.d2).
	@for source in docs/images/*.d2; do \
	  { $(BIN)/d2 $(D2_FLAGS) $$source - && echo "<!-- sha256:$$(sha256sum <$$source | cut -d' ' -f1) -->"; } >$${source%.d2}.svg || exit 1; \
	done

##@ Check a change

# Each part of "make check" and "make check-long" is a target of its own. All parts run,
# even after a failure. A part that cannot run fails.
CHECKS      := verify lint test-program test-docs test-e2e test-attack test-cluster
CHECKS_LONG := verify-vulnerabilities verify-reproducible bench-check test-race-long test-previous test-engines fuzz soak test-node release-snapshot

check: ## Check all that a change must pass, and list the parts with their times.
	@test/tools/parts build-tests $(CHECKS)

check-long: ## Check what takes hours, as every night and before a release.
	@test/tools/parts build-tests $(CHECKS_LONG)

# The tests in which the operator does most with Helm.
HELM4_TESTS := ^Test(Adopt|Delete|Force|Guard|Helm|Hook|Install|Keep|Kill|LostResponses|Record|Rollback|StuckHook|TakeOwnership|Uninstall|Upgrade)

check-helm4: ## Check the operator with Helm 4: packages, charts, and a part of the end-to-end tests.
	@$(MAKE) --no-print-directory check HELM=4 CHECKS='test-program test-docs test-e2e' E2E_TESTS='$(HELM4_TESTS)'

build-tests: build cluster-binaries $(BIN)/govc $(BIN)/vcsim $(BIN)/gotestsum $(BIN)/golangci-lint $(BIN)/vale

# These packages share no memory, and take ten times as long with the race detector.
NO_RACE := /internal/authoring/(bundle|lint|migrate|scaffold)$$

test-program: build-tests ## Test the packages of the program, with the race detector and an API server.
	@CGO_ENABLED=1 $(REPORT_TESTS) -race $$(go list ./... | grep -vE '$(NO_RACE)'); result=$$?; \
	$(REPORT_TESTS) $$(go list ./... | grep -E '$(NO_RACE)') && exit $$result

# The tests of charts/vmgroup find govc and vcsim next to the operator's binary.
test-docs: build-tests ## Test docs, charts, examples and the other folders of test/.
	@cd test && $(REPORT_TESTS) $$(go list ./... | grep -vE '/test/(e2e|attack)$$')

test-e2e: build-tests ## Test the operator from outside, on a cluster.
	@cd test && $(REPORT_TESTS) -run '$(or $(E2E_TESTS),.)' ./e2e

test-attack: build-tests ## Attack the operator as a tenant would.
	@cd test && $(REPORT_TESTS) ./attack

test-cluster: build-tests ## Test the local cluster itself.
	@cd test/cluster && $(REPORT_TESTS) ./internal/... ./cmd/cluster ./cmd/download

bench-check: build cluster-binaries $(BIN)/bench ## Fail if an install, an idle operator, an idle kind or a restart exceeds its limits.
	@$(BIN)/bench check

test-race-long: cluster-binaries ## Test the packages of the program ten times with the race detector and all inputs.
	@CGO_ENABLED=1 CHARTWRIGHT_LONG=1 $(GO_TEST) -race -count=10 -timeout 4h ./internal/...

verify: build-tests ## Check formats, modules, generated files, charts, config, wording and commit messages.
	@test/tools/verify

verify-%: build-tests
	@test/tools/verify $*

GOVULNDB ?= https://vuln.go.dev

verify-vulnerabilities: $(BIN)/govulncheck ## Check for known vulnerabilities in the database GOVULNDB.
	@$(BIN)/govulncheck -db '$(GOVULNDB)' ./cmd/chartwright

PREVIOUS_TESTS := DowngradeChangesNothing|ReplicasOfTwoVersions|ApprovalWaits

test-previous: build cluster-binaries $(BIN)/previous/chartwright ## Test up- and downgrades between the previous version and this one.
	@cd test && CHARTWRIGHT_PREVIOUS=$(CURDIR)/$(BIN)/previous/chartwright $(GO_TEST) -v ./e2e -run '^TestPreviousVersion_($(PREVIOUS_TESTS))$$'

test-engines: build cluster-binaries $(BIN)/helm4 ## Test that each major version of Helm continues the releases of the other.
	@$(MAKE) --no-print-directory build BIN=$(BIN)/other HELM=$(if $(HELM_TAG),3,4)
	@cd test && CHARTWRIGHT_OTHER_ENGINE=$(CURDIR)/$(BIN)/other/chartwright $(GO_TEST) -v ./e2e -run '^TestEngines_'

previous-state: ## Record the state of a cluster of the previous version, for tests of upgrades.
	@$(MAKE) --no-print-directory test-previous PREVIOUS_TESTS='CreateState|$(PREVIOUS_TESTS)'

# Four decks with five seeds, in parallel, run each action about 20 times, with faults.
SOAK_SEEDS ?= 1,2,3,4,5
SOAK_DECKS ?= 4
SOAK_TIME  ?= 30m

# End-to-end tests that take too long for "make check", or make fewer attempts there.
LONG_TESTS := TestDrift_CorrectionSpeed|TestPlan_EqualsAction|TestKill_AtEachWrite|TestKill_AtEachWriteOfUpgradeWithHook|TestLostResponses_AtEachWrite|TestLostResponses_AtEachWriteOfUpgradeWithHook|TestFailures_LeakNoResources|TestRollout_AThousandReleases

soak: build cluster-binaries ## Run random actions and faults for a long time, and long tests: SOAK_SEEDS, SOAK_DECKS, SOAK_TIME.
	@cd test && CHARTWRIGHT_LONG=1 CHARTWRIGHT_SOAK_SEEDS=$(SOAK_SEEDS) CHARTWRIGHT_SOAK_DECKS=$(SOAK_DECKS) CHARTWRIGHT_SOAK_TIME=$(SOAK_TIME) \
	  $(GO_TEST) -v -timeout 2h ./soak
	@cd test && CHARTWRIGHT_LONG=1 $(GO_TEST) -v ./e2e -run '^($(LONG_TESTS))$$'

FUZZ_TIME ?= 1m
fuzz: ## Run each fuzz test for FUZZ_TIME (make check runs only the seeds).
	@test/tools/fuzz $(FUZZ_TIME)

# These tests need Linux, root, namespaces, cgroups and a Debian mirror.
NODE_PACKAGES := mmdebstrap nftables runc
NODE_TEST     ?= .

test-node: node-requirements node-binaries node-images $(BIN)/helm ## Run the tests with containers, on a cluster with one real node: NODE_TEST (a regular expression).
	@test/node/run '$(NODE_TEST)'

node-requirements: $(BIN)/cluster $(BIN)/image
	@dpkg -s $(NODE_PACKAGES) >/dev/null 2>&1 || { apt-get update -q && apt-get install -q -y --no-install-recommends $(NODE_PACKAGES); } >/dev/null
	@$(BIN)/cluster requirements && $(BIN)/image requirements --out $(BIN)/images

node-images: build $(BIN)/image $(BIN)/node/chartwright-next $(BIN)/node/coredns $(BIN)/postgres_exporter $(BIN)/govc $(BIN)/vcsim
	@$(BIN)/image build --bin $(BIN) --out $(BIN)/images $(addprefix --operator ,$(OPERATOR_LAYOUT))

##@ Measure and record

# Run benchmarks on an otherwise idle machine. See docs/dev/performance.md.
BENCH_CRS ?= 1000

bench: build cluster-binaries $(BIN)/bench ## Measure speed and resource use of the operator: BENCH_CRS, BENCH_FLAGS.
	@$(BIN)/bench run --crs $(BENCH_CRS) $(BENCH_FLAGS)

##@ Install and deploy

install: $(if $(filter existing,$(CLUSTER)),$(CLUSTER_PROGRAMS),cluster-up) ## Install the CRDs (starts a local cluster if none runs).
	@$(KUBECTL) apply --server-side --force-conflicts -k config/crd

uninstall: $(CLUSTER_PROGRAMS) ## Delete the custom resources, then the CRDs.
	$(if $(filter existing,$(CLUSTER)),,@$(BIN)/cluster status --dir $(CLUSTER) >/dev/null)
	@$(call delete-resources,$(KUBECTL),--all-namespaces)
	@$(KUBECTL) delete --ignore-not-found -k config/crd

# The image contains a release binary and nothing else. "make image" needs no engine.
IMAGE_PLATFORM ?= linux/$(if $(filter aarch64 arm64,$(shell uname -m)),arm64,amd64)

# The time of the commit, so that the same sources produce the same image.
IMAGE_FLAGS = --name $(IMG) --version $(VERSION) $(addprefix --revision ,$(COMMIT)) $(addprefix --created ,$(shell git log -1 --format=%cI 2>/dev/null)) \
  $(foreach platform,$(PLATFORMS),--binary $(platform)=$(call release-binary,$(platform)))

image: $(BIN)/image $(foreach platform,$(PLATFORMS),$(call release-binary,$(platform))) ## Write the image IMG for PLATFORMS to dist/image, without a container engine.
	@$(BIN)/image layout --out dist/image $(IMAGE_FLAGS)
	@echo "dist/image is the image $(IMG)"

image-check: $(BIN)/image ## Check dist/image: platforms, user, command, labels, size, no shell.
	@$(BIN)/image check --layout dist/image --platform $$(echo $(PLATFORMS) | tr ' ' ,)

image-test: image image-check ## Run dist/image on a cluster with one real node, and upgrade it to another build.
	@$(MAKE) --no-print-directory test-node NODE_TEST=^TestOperator_ OPERATOR_LAYOUT=dist/image

image-push: $(BIN)/image ## Push dist/image as IMG, with the login of docker or podman.
	@$(BIN)/image push --layout dist/image $(IMG)

docker-build: $(call release-binary,$(IMAGE_PLATFORM)) ## Build the image IMG for IMAGE_PLATFORM.
	$(CONTAINER_TOOL) build --platform $(IMAGE_PLATFORM) --tag $(IMG) .

docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

# The local cluster cannot run images: deploy and undeploy use the one of $KUBECONFIG.
DEPLOY_KUBECTL := $(or $(OWN_KUBECTL),$(BIN)/kube/kubectl)

# The folder below config/ to deploy: default; namespaced, which requires that its
# namespace and the CRDs exist; or a folder that you added.
DEPLOY_CONFIG ?= default

# The overlay is written for each deployment, so that no file of the tree changes.
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

overlay:
	@mkdir -p $(BIN)/deploy && echo "$$OVERLAY" >$(BIN)/deploy/kustomization.yaml

dist: overlay $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Write dist/install.yaml with DEPLOY_CONFIG (default) and the image IMG.
	@mkdir -p dist && $(DEPLOY_KUBECTL) kustomize $(BIN)/deploy >dist/install.yaml
	@echo "dist/install.yaml runs the image $(IMG)"

# The version of the chart is that of the release. Other builds have a version that
# is older than every release.
CHART_VERSION ?= $(or $(patsubst v%,%,$(filter v%,$(VERSION))),0.0.0-g$(VERSION))
CHART_HELM    := $(or $(OWN_HELM),$(BIN)/helm)

chart: $(filter $(BIN)/%,$(CHART_HELM)) ## Write the operator's Helm chart to dist: CHART_VERSION. It runs the image of VERSION.
	@$(CHART_HELM) package deploy/chart --version $(CHART_VERSION) --app-version $(VERSION) --destination dist

deploy: overlay $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Deploy DEPLOY_CONFIG (default) with the image IMG and PULL_POLICY.
	@$(DEPLOY_KUBECTL) apply --server-side --force-conflicts -k $(BIN)/deploy
	@$(DEPLOY_KUBECTL) rollout status --namespace chartwright-system --timeout 3m deployment/chartwright-controller-manager

undeploy: $(filter $(BIN)/%,$(DEPLOY_KUBECTL)) ## Delete the custom resources, the operator and, by default, the CRDs.
	@$(call delete-resources,$(DEPLOY_KUBECTL),$(if $(filter namespaced,$(DEPLOY_CONFIG)),--namespace chartwright-system,--all-namespaces))
	@$(DEPLOY_KUBECTL) delete --ignore-not-found -k config/$(DEPLOY_CONFIG)

# Without the operator, the finalizers of the custom resources block their deletion.
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
RELEASE_BUILD     := $(RELEASE_TOOLCHAIN) GOFLAGS='$(strip -trimpath $(addprefix -tags=,$(HELM_TAG)))' GOWORK=off GOAMD64=v1 GOARM64=v8.0 \
  go build -buildvcs=false -ldflags '$(LDFLAGS) -X $(VERSION_VARIABLES).Version=$(VERSION) -X $(VERSION_VARIABLES).Commit=$(COMMIT)'

always:

dist/%/chartwright: always
	@echo "building the release binary for $* (several minutes the first time) ..."
	@mkdir -p $(@D)
	@GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(RELEASE_BUILD) -o $@ ./cmd/chartwright

# GoReleaser runs cyclonedx-gomod, which writes the SBOMs, and cosign from the PATH.
# On a busy machine the builds take more than its default timeout of one hour.
GORELEASER := PATH="$(CURDIR)/$(BIN):$$PATH" $(RELEASE_TOOLCHAIN) $(BIN)/goreleaser release --clean --timeout 3h

release-snapshot: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod $(BIN)/kube/kubectl ## Build the files of a release in dist/release without publishing them, and check them.
	@echo "building the program for 6 platforms (about 20 minutes the first time) ..."
	@$(BIN)/goreleaser check
	@$(GORELEASER) --snapshot --skip sign
	@cd test && CHARTWRIGHT_RELEASE=$(CURDIR)/dist/release $(GO_TEST) -v -run '^TestSnapshot' ./supplychain

release: $(BIN)/goreleaser $(BIN)/cyclonedx-gomod ## Build, sign and publish the release of the tag at HEAD; the release workflow runs it.
	@$(GORELEASER)

# The second build runs in a copy of the sources with an empty build cache.
verify-reproducible: $(call release-binary,$(IMAGE_PLATFORM)) ## Check that two release builds are identical (several minutes).
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && \
	mkdir -p "$$copy/another/folder" && git ls-files -z | xargs -0 cp --parents -t "$$copy/another/folder" && \
	GOCACHE="$$copy/cache" $(MAKE) --no-print-directory -C "$$copy/another/folder" VERSION=$(VERSION) COMMIT=$(COMMIT) $< && \
	cmp $< "$$copy/another/folder/$<" && echo "both builds are identical: $$(sha256sum <$<)"

##@ Operator Lifecycle Manager

# A bundle belongs to one version, so it is not committed. See docs/guides/olm.md.
BUNDLE_VERSION ?= $(or $(patsubst v%,%,$(shell git describe --tags --exact-match 2>/dev/null)),0.0.1)
BUNDLE_IMG     ?= chartwright-bundle:v$(BUNDLE_VERSION)
CHANNELS       ?= stable

# The time of the commit, so that the same sources produce the same bundle.
BUNDLE_FLAGS = --version $(BUNDLE_VERSION) --image $(IMG) --channels $(CHANNELS) \
  $(if $(DEFAULT_CHANNEL),--default-channel $(DEFAULT_CHANNEL)) $(if $(REPLACES),--replaces $(REPLACES)) \
  $(addprefix --created-at ,$(shell git log -1 --format=%cI 2>/dev/null))

bundle: build ## Generate the bundle of BUNDLE_VERSION: CHANNELS, DEFAULT_CHANNEL, REPLACES.
	@$(BIN)/chartwright bundle $(BUNDLE_FLAGS)

bundle-build: bundle ## Build the bundle image BUNDLE_IMG.
	$(CONTAINER_TOOL) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .

bundle-push: ## Push the bundle image BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

##@ Local cluster

cluster-up: cluster-binaries ## Start a local Kubernetes cluster.
	@$(BIN)/cluster up --dir $(LOCAL_CLUSTER)

cluster-down: $(BIN)/cluster ## Stop the local cluster.
	@$(BIN)/cluster down --dir $(LOCAL_CLUSTER)

node-up: node-requirements node-binaries node-images ## Start a local cluster with one real node, which runs containers.
	@$(BIN)/cluster up --dir .cluster-node --containers --images $(BIN)/images --timeout 5m

node-down: $(BIN)/cluster ## Stop the cluster with the real node.
	@$(BIN)/cluster down --dir .cluster-node

cluster-status: $(BIN)/cluster ## Show the status of each component of the local cluster.
	@$(BIN)/cluster status --dir $(LOCAL_CLUSTER)

clean: ## Stop and remove the local clusters, and remove all built files.
	@for cluster in .cluster .cluster-demo .cluster-bench .cluster-node; do \
	  [ ! -x $(BIN)/cluster ] || $(BIN)/cluster down --dir $$cluster >/dev/null || exit 1; \
	  rm -rf $$cluster; \
	done
	@rm -rf $(BIN) dist bundle bundle.Dockerfile

# The flags for a build with the given version.
chartwright-flags = -buildvcs=$(if $(GIT_VERSION),true,false) -ldflags '$(LDFLAGS) -X github.com/chartwright/chartwright/internal/api.Version=$(1)'

# A build with the other major version of Helm replaces the program.
$(BIN)/.helm-$(HELM):
	@mkdir -p $(@D) && rm -f $(@D)/.helm-* && touch $@

$(BIN)/chartwright: $(BIN)/.helm-$(HELM) go.mod go.sum $(call sources,*.go cmd internal charts watches.yaml)
	@mkdir -p $(@D)
	@test/tools/progress 'chartwright (about 2 minutes the first time)' $(BUILD) $(call chartwright-flags,$(VERSION)) -o $@ ./cmd/chartwright

# The tests with containers upgrade the operator to it.
$(BIN)/node/chartwright-next: $(BIN)/chartwright
	@mkdir -p $(@D)
	@test/tools/progress 'the next chartwright' $(BUILD) $(call chartwright-flags,$(VERSION)-next) -o $@ ./cmd/chartwright

# The plugin is the same program under the name that kubectl looks up, and under
# the name that kubectl runs for completions.
$(BIN)/kubectl-chartwright: | $(BIN)/chartwright
	@ln -sfn chartwright $@
	@ln -sfn chartwright $(@D)/kubectl_complete-chartwright

$(BIN)/previous/chartwright: test/tools/previous
	@test/tools/previous $@ $(BUILD)

cluster-binaries: $(BIN)/kube/.control-plane $(BIN)/kube/etcd $(BIN)/kube/stages/.complete $(BIN)/kwok $(BIN)/helm $(BIN)/cluster ## Build the programs that the tests need.

# The programs of a node that runs containers: see test-node.
node-binaries: $(BIN)/kube/.node $(BIN)/kube/etcd $(BIN)/node/containerd $(BIN)/node/cni/.complete $(BIN)/node/coredns $(BIN)/cluster $(BIN)/govc

# The environment selects how to get Kubernetes.
export KUBE_BINARIES KUBE_SERVER

fetch-kubernetes:
	@test/cluster/build fetch

pin-kubernetes: ## Update the checksums of Kubernetes from KUBE_SERVER, after a change of its version.
	@test/cluster/build pin

CLUSTER_MODULE := test/cluster/go.mod test/cluster/go.sum test/cluster/build

$(BIN)/kube/.control-plane: $(CLUSTER_MODULE) test/cluster/kubernetes.sha512 $(wildcard test/cluster/cmd/kube/*.go)
	@test/cluster/build control-plane

$(BIN)/kube/kubectl: | $(BIN)/kube/.control-plane ;

$(BIN)/kube/.node: $(CLUSTER_MODULE) test/cluster/kubernetes.sha512 | $(BIN)/kube/.control-plane
	@test/cluster/build node

$(BIN)/kube/stages/.complete: $(CLUSTER_MODULE)
	@test/cluster/build stages

# test/tools/build builds all other programs. Those of the cluster share packages with
# the control plane, which are compiled once if it is built before them.
TOOLS := golangci-lint vale govulncheck gotestsum d2 cyclonedx-gomod goreleaser postgres_exporter node/coredns node/containerd

$(BIN)/kube/etcd $(BIN)/kwok $(BIN)/cluster: $(CLUSTER_MODULE) | $(BIN)/kube/.control-plane
$(BIN)/cluster: $(call sources,test/cluster/cmd/cluster test/cluster/internal)
$(BIN)/helm $(BIN)/helm4: test/go.mod test/go.sum
$(BIN)/local $(BIN)/bench: go.mod go.sum test/go.mod test/go.sum $(call sources,*.go internal test/local test/bench watches.yaml)
$(BIN)/image: test/go.mod test/go.sum $(call sources,test/image)
$(BIN)/govc $(BIN)/vcsim: $(wildcard test/tools/vsphere/go.* test/tools/vsphere/*/*.go)
$(foreach tool,$(TOOLS),$(eval $(BIN)/$(tool): $(wildcard test/tools/$(notdir $(tool))/*.*)))

$(TOOLS:%=$(BIN)/%) $(addprefix $(BIN)/,kube/etcd kwok cluster helm helm4 local bench image govc vcsim):
	@test/tools/build $@

$(BIN)/node/cni/.complete: $(wildcard test/tools/cni/go.*)
	@test/tools/build $(@D)
	@touch $@
