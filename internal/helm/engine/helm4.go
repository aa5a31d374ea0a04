//go:build helm4

package engine

import (
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint/rules"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/provenance"
	"helm.sh/helm/v4/pkg/registry"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	repo "helm.sh/helm/v4/pkg/repo/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
)

type (
	Configuration    = action.Configuration
	RESTClientGetter = action.RESTClientGetter

	Chart      = chart.Chart
	Dependency = chart.Dependency
	File       = common.File
	Maintainer = chart.Maintainer
	Metadata   = chart.Metadata

	BufferedFile = archive.BufferedFile

	Capabilities   = common.Capabilities
	KubeVersion    = common.KubeVersion
	ReleaseOptions = common.ReleaseOptions
	Values         = common.Values
	VersionSet     = common.VersionSet

	IgnoreRules = ignore.Rules

	ResourceList = kube.ResourceList
	Result       = kube.Result

	Linter = support.Linter

	RegistryClient = registry.Client
	RegistryOption = registry.ClientOption
	PullOption     = registry.PullOption

	Hook             = release.Hook
	HookDeletePolicy = release.HookDeletePolicy
	HookEvent        = release.HookEvent
	HookExecution    = release.HookExecution
	HookPhase        = release.HookPhase
	Info             = release.Info
	Release          = release.Release
	Status           = releasecommon.Status

	RepositoryChart = repo.ChartVersion
	RepositoryEntry = repo.Entry
	RepositoryFile  = repo.File
	RepositoryIndex = repo.IndexFile
)

// Major is the major version of Helm.
const Major = 4

const (
	ValuesfileName = chartutil.ValuesfileName

	IgnoreFile = ignore.HelmIgnore

	LintError   = support.ErrorSev
	LintWarning = support.WarningSev

	HookAnnotation         = release.HookAnnotation
	HookBeforeHookCreation = release.HookBeforeHookCreation
	HookPhaseFailed        = release.HookPhaseFailed
	HookPhaseRunning       = release.HookPhaseRunning
	HookPhaseSucceeded     = release.HookPhaseSucceeded
	HookPostDelete         = release.HookPostDelete
	HookPostInstall        = release.HookPostInstall
	HookPostRollback       = release.HookPostRollback
	HookPostUpgrade        = release.HookPostUpgrade
	HookPreDelete          = release.HookPreDelete
	HookPreInstall         = release.HookPreInstall
	HookPreUpgrade         = release.HookPreUpgrade
	HookSucceeded          = release.HookSucceeded
	HookTest               = release.HookTest
	StatusDeployed         = releasecommon.StatusDeployed
	StatusFailed           = releasecommon.StatusFailed
	StatusSuperseded       = releasecommon.StatusSuperseded
	StatusUninstalling     = releasecommon.StatusUninstalling

	SecretsDriverName = driver.SecretsDriverName
)

var (
	GetVersionSet = action.GetVersionSet

	LoadArchiveFiles = archive.LoadArchiveFiles
	LoadFiles        = loader.LoadFiles

	CoalesceValues                     = commonutil.CoalesceValues
	DefaultCapabilities                = common.DefaultCapabilities
	IsCompatibleRange                  = chartutil.IsCompatibleRange
	ParseKubeVersion                   = common.ParseKubeVersion
	ProcessDependenciesWithMerge       = chartutil.ProcessDependencies
	ReadValues                         = common.ReadValues
	ToRenderValuesWithSchemaValidation = commonutil.ToRenderValuesWithSchemaValidation
	ValidateAgainstSchema              = commonutil.ValidateAgainstSchema

	NewSettings = cli.New

	NewLookupFunction = engine.NewLookupFunction
	Render            = engine.Render

	EmptyIgnoreRules = ignore.Empty
	ParseIgnoreRules = ignore.Parse

	LintChartfile    = rules.Chartfile
	LintDependencies = rules.Dependencies

	NewSignatory = provenance.NewFromKeyring

	RegistryAuthorizer          = registry.ClientOptAuthorizer
	RegistryCredentialsFile     = registry.ClientOptCredentialsFile
	RegistryHTTPClient          = registry.ClientOptHTTPClient
	RegistryPlainHTTP           = registry.ClientOptPlainHTTP
	MatchingTag                 = registry.GetTagMatchingVersionOrConstraint
	NewRegistryClient           = registry.NewClient
	PullIgnoreMissingProvenance = registry.PullOptIgnoreMissingProv
	PullChart                   = registry.PullOptWithChart
	PullProvenance              = registry.PullOptWithProv

	InstallOrder  = releaseutil.InstallOrder
	SortManifests = releaseutil.SortManifests

	LoadRepositoryFile  = repo.LoadFile
	ResolveReferenceURL = repo.ResolveReferenceURL

	ErrReleaseNotFound = driver.ErrReleaseNotFound
	SystemLabels       = driver.GetSystemLabels
)
