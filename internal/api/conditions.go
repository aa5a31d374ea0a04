package api

// Condition types on a custom resource. Reconciling and Stalled follow the kstatus
// convention: they are present only while they are True. So are all conditions except
// Ready, Deployed and Tested.
const (
	// ConditionReady: the newest revision matches the spec, and all its resources are ready.
	ConditionReady = "Ready"
	// ConditionReconciling: the operator is reconciling the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: a user must act, for example by correcting the spec.
	ConditionStalled = "Stalled"
	// ConditionDeployed: a revision of the release is deployed, even if it does not match
	// the spec.
	ConditionDeployed = "Deployed"
	// ConditionPermissionsMissing: the operator's role lacks rules that the kind always
	// needs. The reason is ReasonForbidden.
	ConditionPermissionsMissing = "PermissionsMissing"
	// ConditionUnwatched: the operator cannot watch some managed resources, so it counts them
	// as ready and does not detect their drift. The reason is ReasonWatchFailed.
	ConditionUnwatched = "Unwatched"
	// ConditionDrifted: a managed resource differs from the deployed revision.
	ConditionDrifted = "Drifted"
	// ConditionHeld: the release is held after a rollback.
	ConditionHeld = "Held"
	// ConditionPaused: an annotation pauses the custom resource.
	ConditionPaused = "Paused"
	// ConditionUpdateAvailable: a new chart is available but not yet deployed.
	ConditionUpdateAvailable = "UpdateAvailable"
	// ConditionTested: the chart's tests passed (absent if they did not run).
	ConditionTested = "Tested"
	// ConditionRollbackRefused: the operator refused the requested rollback.
	ConditionRollbackRefused = "RollbackRefused"
	// ConditionInvalidAnnotations: an annotation has an invalid value or an unknown key.
	ConditionInvalidAnnotations = "InvalidAnnotations"
	// ConditionNumbersKept: the release keeps the type of the numbers in its values, because
	// another would change the named fields. The reason is ReasonFieldsDiffer.
	ConditionNumbersKept = "NumbersKept"
	// ConditionStatusFieldsFailed: a status field or an output cannot be computed. The reason
	// is ReasonExpressionFailed.
	ConditionStatusFieldsFailed = "StatusFieldsFailed"
)

// Reasons for Ready, Reconciling and Stalled.
const (
	// ReasonDeployed: the newest revision is deployed and matches the spec.
	ReasonDeployed = "Deployed"
	// ReasonInstalling: the named action is running.
	ReasonInstalling = "Installing"
	// ReasonUpgrading: the named action is running.
	ReasonUpgrading = "Upgrading"
	// ReasonUninstalling: the named action is running.
	ReasonUninstalling = "Uninstalling"
	// ReasonInvalidValues: the chart's schema rejects the spec, or the spec exceeds a limit.
	ReasonInvalidValues = "InvalidValues"
	// ReasonRenderFailed: a chart template fails with the current values.
	ReasonRenderFailed = "RenderFailed"
	// ReasonInstallFailed: the last attempt at this action failed.
	ReasonInstallFailed = "InstallFailed"
	// ReasonUpgradeFailed: the last attempt at this action failed.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonAdopting: the named action is running.
	ReasonAdopting = "Adopting"
	// ReasonAdoptionFailed: the last attempt at this action failed.
	ReasonAdoptionFailed = "AdoptionFailed"
	// ReasonNotAllowed: `allow` forbids a resource or `lookup` in the chart.
	ReasonNotAllowed = "NotAllowed"
	// ReasonRefused: the API server rejected a resource, and no resource was changed.
	ReasonRefused = "ObjectRefused"
	// ReasonUninstallFailed: the last attempt at this action failed.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonInterrupted: an action was interrupted, and the operator will repeat it.
	ReasonInterrupted = "Interrupted"
	// ReasonAborted: a user aborted the last action; to continue, edit the spec or remove
	// the annotation `abort`.
	ReasonAborted = "Aborted"
	// ReasonNameConflict: both possible release names are in use.
	ReasonNameConflict = "ReleaseNameConflict"
	// ReasonObjectConflict: the release does not own a resource of the chart that exists.
	ReasonObjectConflict = "ObjectConflict"
	// ReasonTooLarge: the release does not fit into a Secret.
	ReasonTooLarge = "ReleaseTooLarge"
	// ReasonLocked: another client is running an operation on the release.
	ReasonLocked = "Locked"
	// ReasonRollingBack: the named action is running.
	ReasonRollingBack = "RollingBack"
	// ReasonRollbackFailed: the last attempt at this action failed.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonPaused: a change is waiting for the pause to end.
	ReasonPaused = "Paused"
	// ReasonOrphaning: the custom resource is being deleted, but its release is kept.
	ReasonOrphaning = "Orphaning"
	// ReasonNamespaceTerminating: a namespace of the release is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonWaitingForObjects: the resources of the release are being deleted.
	ReasonWaitingForObjects = "WaitingForObjects"
	// ReasonProgressing: some resources are not ready yet.
	ReasonProgressing = "Progressing"
	// ReasonProgressDeadlineExceeded: some resources did not become ready before the progress
	// deadline.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonApprovalRequired: the next action waits for approval; the message contains the plan.
	// Also for `Drifted`: a correction of the replicas would delete claims.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonObjectProtected: the annotation `protect` on a resource blocks the uninstall.
	ReasonObjectProtected = "ObjectProtected"
	// ReasonObjectFailed: a resource cannot become ready without intervention.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonDependencyNotReady: a dependency is not ready.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonDependencyCycle: custom resources depend on each other.
	ReasonDependencyCycle = "DependencyCycle"
	// ReasonKindBroken: the entry of the kind in the watches file has a problem, so that only
	// deletions are carried out.
	ReasonKindBroken = "KindBroken"
	// ReasonInUse: the deletion waits for dependent custom resources.
	ReasonInUse = "InUse"
)

// Reasons for UpdateAvailable.
const (
	// ReasonWaiting: the custom resource is in the queue.
	ReasonWaiting = "Waiting"
	// ReasonRolloutStopped: the upgrade of another custom resource failed.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonRolloutPaused: a user has paused the rollout.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonHeld: the release is held.
	ReasonHeld = "Held"
	// ReasonDowngradeRefused: the new chart is older than the deployed one; also a reason for
	// ConditionReady.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// Reasons for Held.
const (
	// ReasonRolledBack: a user requested the rollback.
	ReasonRolledBack = "RolledBack"
	// ReasonRolledBackAfterFailure: an upgrade failed, and the kind sets `onFailure: Rollback`.
	ReasonRolledBackAfterFailure = "RolledBackAfterFailure"
)

// Reasons for Tested.
const (
	// ReasonTestsPassed: all tests passed.
	ReasonTestsPassed = "TestsPassed"
	// ReasonTestsFailed: a test failed.
	ReasonTestsFailed = "TestsFailed"
)

// Reasons for RollbackRefused.
const (
	// ReasonNoSuchRevision: the requested revision is not stored, was never deployed, or is
	// beyond the history limit.
	ReasonNoSuchRevision = "NoSuchRevision"
	// ReasonInvalidValue: the value of the annotation is invalid; also the reason for
	// ConditionInvalidAnnotations.
	ReasonInvalidValue = "InvalidValue"
	// ReasonRecordUntrusted: the release record has no valid signature.
	ReasonRecordUntrusted = "RecordUntrusted"
)

// Reasons for Drifted.
const (
	// ReasonDriftDetected: the operator corrects the drift, unless the kind's `drift.mode` is
	// `Warn`.
	ReasonDriftDetected = "DriftDetected"
	// ReasonDriftFight: another client repeatedly changes a resource, so corrections are delayed.
	ReasonDriftFight = "DriftFight"
	// ReasonRepairFailed: the last drift correction failed.
	ReasonRepairFailed = "RepairFailed"
)

// ReasonWatchFailed is the reason of ConditionUnwatched.
const ReasonWatchFailed = "WatchFailed"

// ReasonFieldsDiffer is the reason of ConditionNumbersKept.
const ReasonFieldsDiffer = "FieldsDiffer"

// ReasonForbidden is the reason of ConditionPermissionsMissing.
const ReasonForbidden = "Forbidden"

// ReasonExpressionFailed is the reason of ConditionStatusFieldsFailed.
const ReasonExpressionFailed = "ExpressionFailed"

// Reasons for Deployed. They are those of the operator-sdk.
const (
	// ReasonInstallSuccessful: the first revision is deployed.
	ReasonInstallSuccessful = "InstallSuccessful"
	// ReasonUpgradeSuccessful: a later revision is deployed.
	ReasonUpgradeSuccessful = "UpgradeSuccessful"
	// ReasonNotInstalled: no revision is deployed.
	ReasonNotInstalled = "NotInstalled"
)

// Event reasons. The operator emits one event per transition. An event about a failed
// action with a known cause, or about a state that no action has caused, has the reason of
// the condition.
const (
	EventInstalled          = "Installed"
	EventUpgraded           = "Upgraded"
	EventUninstalled        = "Uninstalled"
	EventInstallFailed      = ReasonInstallFailed
	EventUpgradeFailed      = ReasonUpgradeFailed
	EventAdopted            = "Adopted"
	EventAdoptionFailed     = ReasonAdoptionFailed
	EventDriftCorrected     = "DriftCorrected"
	EventDriftFight         = ReasonDriftFight
	EventRepairFailed       = ReasonRepairFailed
	EventObjectAdjusted     = "ObjectAdjusted"
	EventCRDMissing         = "CRDMissing"
	EventRecordSetAside     = "RecordSetAside"
	EventRecordUntrusted    = ReasonRecordUntrusted
	EventUninstallFailed    = ReasonUninstallFailed
	EventInterrupted        = ReasonInterrupted
	EventAborted            = ReasonAborted
	EventHookStuck          = "HookStuck"
	EventOverrideValuesUsed = "OverrideValuesInUse"
	EventRolledBack         = "RolledBack"
	EventRollbackFailed     = ReasonRollbackFailed
	EventRollbackSkipped    = "RollbackSkipped"
	EventResumed            = "Resumed"
	EventPaused             = ConditionPaused
	EventUnpaused           = "Unpaused"
	EventTestsPassed        = ReasonTestsPassed
	EventTestsFailed        = ReasonTestsFailed
	EventOrphaned           = "Orphaned"
	EventHooksSkipped       = "HooksSkipped"
	EventObjectLeft         = "ObjectLeft"
	EventNamespaceKept      = "NamespaceKept"
	EventForced             = "Forced"
	EventApproved           = "Approved"
	EventDataAtRisk         = "DataAtRisk"
	EventReady              = ConditionReady
	EventRolloutStopped     = ReasonRolloutStopped
)

// Events on the operator's own Pod.
const (
	EventKindBroken         = ReasonKindBroken
	EventPermissionsMissing = ConditionPermissionsMissing
	EventCRDOutdated        = "CRDOutdated"
	// EventSigningKeyUnusable: the operator cannot read, store or use the key that signs
	// release records.
	EventSigningKeyUnusable = "SigningKeyUnusable"
	// EventSigningKeyRestored: the Secret of the key was deleted, and the operator has
	// created it again with the same key.
	EventSigningKeyRestored = "SigningKeyRestored"
)

// Reasons for Ready if an object of valuesFrom cannot be used.
const (
	// ReasonValuesSourceMissing: an object that `valuesFrom` references, or its key or field,
	// does not exist.
	ReasonValuesSourceMissing = "ValuesSourceMissing"
	// ReasonValuesSourceInvalid: the content of an object that `valuesFrom` references is
	// invalid, or an expression failed.
	ReasonValuesSourceInvalid = "ValuesSourceInvalid"
	// ReasonValuesSourceForbidden: the operator is not permitted to read an object that
	// `valuesFrom` references.
	ReasonValuesSourceForbidden = "ValuesSourceForbidden"
	// ReasonInputsUnread: an object that `valuesFrom` references, or the API versions that
	// the chart depends on, cannot be read at present, so that it is unknown whether the
	// release follows the spec.
	ReasonInputsUnread = "InputsUnread"
)
