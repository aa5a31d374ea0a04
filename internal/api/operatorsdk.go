package api

// OperatorSDKDomain is the prefix of the names that the operator-sdk's Helm operator reads
// and writes. Chartwright still honors them on custom resources of a kind that such an
// operator served before.
const OperatorSDKDomain = "helm.sdk.operatorframework.io"

// Finalizers of that operator: the current name, and the name in earlier releases.
// Chartwright replaces them by its own finalizer.
const (
	FinalizerOperatorSDK       = OperatorSDKDomain + "/uninstall-release"
	FinalizerOperatorSDKLegacy = "uninstall-helm-release"
)

// FinalizersOperatorSDK lists both finalizers.
var FinalizersOperatorSDK = []string{FinalizerOperatorSDK, FinalizerOperatorSDKLegacy}

// Annotations of that operator on a custom resource. If Chartwright has an equivalent
// annotation, it takes precedence; see package annotations.
const (
	// AnnotationUpgradeForce makes every upgrade delete and recreate resources that cannot
	// be changed. AnnotationRollbackForce does so for every rollback after a failed
	// upgrade.
	AnnotationUpgradeForce  = OperatorSDKDomain + "/upgrade-force"
	AnnotationRollbackForce = OperatorSDKDomain + "/rollback-force"

	AnnotationOperatorSDKUninstallWait         = OperatorSDKDomain + "/uninstall-wait"
	AnnotationOperatorSDKReconcilePeriod       = OperatorSDKDomain + "/reconcile-period"
	AnnotationOperatorSDKInstallDisableHooks   = OperatorSDKDomain + "/install-disable-hooks"
	AnnotationOperatorSDKUpgradeDisableHooks   = OperatorSDKDomain + "/upgrade-disable-hooks"
	AnnotationOperatorSDKUninstallDisableHooks = OperatorSDKDomain + "/uninstall-disable-hooks"
	AnnotationOperatorSDKInstallDescription    = OperatorSDKDomain + "/install-description"
	AnnotationOperatorSDKUpgradeDescription    = OperatorSDKDomain + "/upgrade-description"
	AnnotationOperatorSDKUninstallDescription  = OperatorSDKDomain + "/uninstall-description"
)

// Condition types of that operator. Chartwright maintains them only on custom resources
// that the operator has served, which have ConditionInitialized.
const (
	// ConditionInitialized is True once an operator has reconciled the custom resource.
	ConditionInitialized = "Initialized"
	// ConditionReleaseFailed is True while the last install, upgrade or uninstall has
	// failed.
	ConditionReleaseFailed = "ReleaseFailed"
	// ConditionIrreconcilable is True while the operator cannot reconcile the release
	// records with the spec, or the managed resources with the release records.
	ConditionIrreconcilable = "Irreconcilable"
)

// Reasons of ConditionReleaseFailed and ConditionIrreconcilable.
const (
	ReasonInstallError   = "InstallError"
	ReasonUpgradeError   = "UpgradeError"
	ReasonUninstallError = "UninstallError"
	ReasonReconcileError = "ReconcileError"
)
