package api

// Annotations by which people ask something of the operator, on a custom
// resource. Package annotations tells what values they take.
const (
	// AnnotationRollbackTo asks for an earlier revision to run again.
	AnnotationRollbackTo = Domain + "/rollback-to"
	// AnnotationPause keeps the operator from changing anything.
	AnnotationPause = Domain + "/pause"
	// AnnotationReconcile asks for everything to be verified once.
	AnnotationReconcile = Domain + "/reconcile-requested-at"
	// AnnotationForce asks for objects that cannot be changed to be deleted and
	// made again, once.
	AnnotationForce = Domain + "/force"
	// AnnotationTest asks for the chart's tests to be run once.
	AnnotationTest = Domain + "/test"
	// AnnotationAbort ends an action that waits for a hook, also while a container
	// of the hook runs. The value names the revision that the action makes, or
	// AbortUninstall or AbortTest.
	AnnotationAbort = Domain + "/abort"
	// AnnotationTakeOwnership lets an install or upgrade take over objects that
	// are another's, where the kind's allow block permits it.
	AnnotationTakeOwnership = Domain + "/take-ownership"
	// AnnotationReconcilePeriod takes the place of the kind's reconcilePeriod.
	AnnotationReconcilePeriod = Domain + "/reconcile-period"
	// AnnotationUninstallWait keeps the custom resource until every object of
	// its release is gone.
	AnnotationUninstallWait = Domain + "/uninstall-wait"
	// AnnotationDeletionPolicy says what becomes of the release when the custom
	// resource is deleted.
	AnnotationDeletionPolicy = Domain + "/deletion-policy"
	// The rest steer Helm's actions.
	AnnotationInstallDisableHooks   = Domain + "/install-disable-hooks"
	AnnotationInstallDescription    = Domain + "/install-description"
	AnnotationUpgradeDisableHooks   = Domain + "/upgrade-disable-hooks"
	AnnotationUpgradeDescription    = Domain + "/upgrade-description"
	AnnotationUninstallDisableHooks = Domain + "/uninstall-disable-hooks"
	AnnotationUninstallDescription  = Domain + "/uninstall-description"
)

// Values of AnnotationAbort for the actions that make no revision.
const (
	AbortUninstall = "uninstall"
	AbortTest      = "test"
)

// AnnotationRolloutPaused on the CustomResourceDefinition of a kind keeps, while it
// is "true", those of its custom resources from being upgraded that wait for a
// new chart.
const AnnotationRolloutPaused = Domain + "/rollout-paused"

// AnnotationRotate asks, by "true" on the Secret of the signing key, for a new
// key. The operator removes the annotation once the new key is stored.
const AnnotationRotate = Domain + "/rotate"

// Annotations on managed resources. The operator adds them like the labels.
const (
	// AnnotationOwner names the custom resource for people:
	// "<kind>.<group>/<namespace>/<name>".
	AnnotationOwner = Domain + "/owner"
	// AnnotationApplied holds a hash of the object as it was last sent.
	AnnotationApplied = Domain + "/applied"
	// AnnotationDrift on a managed resource sets what the operator does about its
	// drift. The only value is DriftIgnore.
	AnnotationDrift = Domain + "/drift"
	// DriftIgnore leaves a drifted resource as it is.
	DriftIgnore = "ignore"
)

// AnnotationAnsibleReconcilePeriod is what an Ansible operator of the
// operator-sdk takes for AnnotationReconcilePeriod. It counts where that is not
// there, so that resources written for one go on meaning what they say.
const AnnotationAnsibleReconcilePeriod = "ansible.operator-sdk/reconcile-period"
