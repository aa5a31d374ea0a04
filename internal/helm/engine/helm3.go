//go:build !helm4

package engine

import (
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/ignore"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/provenance"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/repo"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"helm.sh/helm/v3/pkg/strvals"
)

type (
	Configuration    = action.Configuration
	RESTClientGetter = action.RESTClientGetter

	Chart      = chart.Chart
	Dependency = chart.Dependency
	File       = chart.File
	Maintainer = chart.Maintainer
	Metadata   = chart.Metadata

	BufferedFile = loader.BufferedFile

	Capabilities   = chartutil.Capabilities
	KubeVersion    = chartutil.KubeVersion
	ReleaseOptions = chartutil.ReleaseOptions
	Values         = chartutil.Values
	VersionSet     = chartutil.VersionSet

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
	Status           = release.Status

	RepositoryChart = repo.ChartVersion
	RepositoryEntry = repo.Entry
	RepositoryFile  = repo.File
	RepositoryIndex = repo.IndexFile

	Driver = driver.Driver
)

// Major is the major version of Helm.
const Major = 3

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
	StatusDeployed         = release.StatusDeployed
	StatusFailed           = release.StatusFailed
	StatusSuperseded       = release.StatusSuperseded
	StatusUninstalling     = release.StatusUninstalling

	SecretsDriverName = driver.SecretsDriverName
)

var (
	CheckDependencies = action.CheckDependencies
	GetVersionSet     = action.GetVersionSet
	NewInstall        = action.NewInstall
	NewReleaseTesting = action.NewReleaseTesting
	NewRollback       = action.NewRollback
	NewUpgrade        = action.NewUpgrade

	LoadArchiveFiles = loader.LoadArchiveFiles
	LoadFiles        = loader.LoadFiles

	CoalesceValues                     = chartutil.CoalesceValues
	DefaultCapabilities                = chartutil.DefaultCapabilities
	IsCompatibleRange                  = chartutil.IsCompatibleRange
	ParseKubeVersion                   = chartutil.ParseKubeVersion
	ProcessDependenciesWithMerge       = chartutil.ProcessDependenciesWithMerge
	ReadValues                         = chartutil.ReadValues
	ToRenderValuesWithSchemaValidation = chartutil.ToRenderValuesWithSchemaValidation
	ValidateAgainstSchema              = chartutil.ValidateAgainstSchema

	NewSettings = cli.New

	NewLookupFunction = engine.NewLookupFunction
	Render            = engine.Render

	EmptyIgnoreRules = ignore.Empty
	ParseIgnoreRules = ignore.Parse

	LintChartfile    = rules.Chartfile
	LintDependencies = rules.Dependencies
	LintTemplates    = rules.TemplatesWithSkipSchemaValidation

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

	NewStorage = storage.Init

	ErrReleaseNotFound = driver.ErrReleaseNotFound
	SystemLabels       = driver.GetSystemLabels
	NewSecretsDriver   = driver.NewSecrets

	ParseSetValue = strvals.ParseInto
	ParseSetFile  = strvals.ParseIntoFile
)
