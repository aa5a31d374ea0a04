package api

// Annotations on a custom resource. Users set them to send requests to the operator.
// Package annotations parses their values.
const (
	// AnnotationRollbackTo requests a rollback to an earlier revision.
	AnnotationRollbackTo = Domain + "/rollback-to"
	// AnnotationPause pauses the custom resource: the operator changes nothing.
	AnnotationPause = Domain + "/pause"
	// AnnotationReconcile requests that the operator verifies all resources of the release
	// once.
	AnnotationReconcile = Domain + "/reconcile-requested-at"
	// AnnotationForce requests that the operator deletes and recreates resources that
	// cannot be changed, once.
	AnnotationForce = Domain + "/force"
	// AnnotationApprove approves the plan with this digest: a change that can lose data, or
	// an upgrade of a kind whose upgrades need an approval.
	AnnotationApprove = Domain + "/approve"
	// AnnotationTest requests one run of the chart's tests.
	AnnotationTest = Domain + "/test"
	// AnnotationAbort ends an action that waits for a hook, even while a container of the
	// hook runs. The value is the revision that the action creates, AbortUninstall or
	// AbortTest.
	AnnotationAbort = Domain + "/abort"
	// AnnotationTakeOwnership allows an install or upgrade to take over resources that the
	// release does not own, if the allow block of the kind permits it.
	AnnotationTakeOwnership = Domain + "/take-ownership"
	// AnnotationReconcilePeriod overrides the reconcilePeriod of the kind.
	AnnotationReconcilePeriod = Domain + "/reconcile-period"
	// AnnotationUninstallWait keeps the custom resource until every resource of its release
	// is deleted.
	AnnotationUninstallWait = Domain + "/uninstall-wait"
	// AnnotationDeletionPolicy sets whether deleting the custom resource uninstalls or
	// orphans the release, or also deletes its data.
	AnnotationDeletionPolicy = Domain + "/deletion-policy"
	// AnnotationDependsOn names objects that must be ready before the release is installed or
	// upgraded, in addition to those of the kind.
	AnnotationDependsOn = Domain + "/depends-on"
	// AnnotationDeletionOrder sets whether a deletion waits for custom resources that depend
	// on this one. The only value is DeletionOrderIgnore.
	AnnotationDeletionOrder = Domain + "/deletion-order"
	// AnnotationInstallDisableHooks and the following annotations change how Helm actions run.
	AnnotationInstallDisableHooks   = Domain + "/install-disable-hooks"
	AnnotationInstallDescription    = Domain + "/install-description"
	AnnotationUpgradeDisableHooks   = Domain + "/upgrade-disable-hooks"
	AnnotationUpgradeDescription    = Domain + "/upgrade-description"
	AnnotationUninstallDisableHooks = Domain + "/uninstall-disable-hooks"
	AnnotationUninstallDescription  = Domain + "/uninstall-description"
)

// Values of AnnotationAbort for actions that create no revision.
const (
	AbortUninstall = "uninstall"
	AbortTest      = "test"
)

// DeletionOrderIgnore deletes the custom resource although others depend on it.
const DeletionOrderIgnore = "ignore"

// AnnotationRolloutPaused pauses the rollout of a kind's chart while it is "true" on the
// CustomResourceDefinition of the kind: custom resources that wait for the new chart are
// not upgraded.
const AnnotationRolloutPaused = Domain + "/rollout-paused"

// AnnotationRotate requests a new signing key by the value "true" on the Secret of the
// signing key. The operator removes the annotation when the new key is stored.
const AnnotationRotate = Domain + "/rotate"

// Annotations on managed resources. The operator adds the first two, as it adds the labels.
// Charts and users add the others.
const (
	// AnnotationOwner names the custom resource in readable form:
	// "<kind>.<group>/<namespace>/<name>".
	AnnotationOwner = Domain + "/owner"
	// AnnotationApplied holds a hash of the resource as it was last sent to the API server. On a
	// hook, it holds a random value, which identifies the request that created it.
	AnnotationApplied = Domain + "/applied"
	// AnnotationDrift on a managed resource sets what the operator does about its drift.
	// The only value is DriftIgnore.
	AnnotationDrift = Domain + "/drift"
	// DriftIgnore disables drift correction for the resource.
	DriftIgnore = "ignore"
	// AnnotationLeftBy on a resource with LabelLeft names the deleted custom resource, as
	// AnnotationOwner does. Only a custom resource of that kind and name adopts the resource
	// without a request.
	AnnotationLeftBy = Domain + "/left-by"
	// AnnotationProtect on a managed resource protects it while the value is "true": its
	// deletion needs an approval. When the custom resource is deleted, the resource stays or,
	// if the kind deletes data, the uninstall fails.
	AnnotationProtect = Domain + "/protect"
	// AnnotationClaims on a StatefulSet sets what happens to the claims that Kubernetes
	// creates from its volumeClaimTemplates when the release is uninstalled. The only value
	// is ClaimsDelete. Without it, the claims stay. It is ignored if only the spec sets it.
	AnnotationClaims = Domain + "/claims"
	// ClaimsDelete deletes the claims when the release is uninstalled, and only then: not
	// when the StatefulSet is deleted or recreated, or no longer rendered.
	ClaimsDelete = "delete"
)

// AnnotationAnsibleReconcilePeriod is the reconcile period annotation of the operator-sdk's
// Ansible operators. It has an effect only if AnnotationReconcilePeriod is not set, so that
// custom resources written for an Ansible operator keep their period.
const AnnotationAnsibleReconcilePeriod = "ansible.operator-sdk/reconcile-period"
