package api

// OperatorSDKDomain is the prefix of what the operator-sdk's Helm operator
// writes and reads. Where one of its operators has served a kind before, its
// words go on meaning what they meant.
const OperatorSDKDomain = "helm.sdk.operatorframework.io"

// Finalizers of that operator, of today and of earlier releases. Ours takes
// their place.
const (
	FinalizerOperatorSDK       = OperatorSDKDomain + "/uninstall-release"
	FinalizerOperatorSDKLegacy = "uninstall-helm-release"
)

// FinalizersOperatorSDK are all of them.
var FinalizersOperatorSDK = []string{FinalizerOperatorSDK, FinalizerOperatorSDKLegacy}

// Annotations of that operator on a custom resource. Those that say what one of
// ours says count where ours is not there; see package annotations.
const (
	// AnnotationUpgradeForce has every upgrade delete and make again what cannot
	// be changed otherwise, and AnnotationRollbackForce every rollback that
	// answers a failure.
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

// Condition types of that operator. They are kept up on custom resources that
// it has served, which is seen by ConditionInitialized, and on no others.
const (
	// ConditionInitialized is True as soon as an operator has seen the resource.
	ConditionInitialized = "Initialized"
	// ConditionReleaseFailed is True while the last install, upgrade or
	// uninstall has failed.
	ConditionReleaseFailed = "ReleaseFailed"
	// ConditionIrreconcilable is True while what is stored cannot be brought
	// together with the spec, or what runs with what is stored.
	ConditionIrreconcilable = "Irreconcilable"
)

// Reasons of the last two.
const (
	ReasonInstallError   = "InstallError"
	ReasonUpgradeError   = "UpgradeError"
	ReasonUninstallError = "UninstallError"
	ReasonReconcileError = "ReconcileError"
)
