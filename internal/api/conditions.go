package api

// Condition types on a custom resource. Reconciling and Stalled follow the kstatus
// convention: they are present only while they are True.
const (
	// ConditionReady is True when the newest revision matches the spec and all its
	// resources are ready.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator reconciles the spec; absent
	// otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while the operator cannot proceed without a user, for
	// example until the spec is corrected; absent otherwise. The operator still retries.
	ConditionStalled = "Stalled"
	// ConditionDeployed is True while a revision of the release is deployed, even if it
	// does not match the spec.
	ConditionDeployed = "Deployed"
	// ConditionPermissionsMissing is True while the operator's role lacks RBAC rules that
	// every custom resource of the kind needs; its reason is ReasonForbidden. The message
	// lists the rules to add. Ready shows whether a missing rule has made an action fail.
	// Absent otherwise.
	ConditionPermissionsMissing = "PermissionsMissing"
	// ConditionUnwatched is True while the release has resources of a kind that the
	// operator cannot watch; its reason is ReasonWatchFailed. The operator does not detect
	// drift of these resources, and counts them as ready. The message lists the kinds and,
	// for each, why it cannot be watched. The operator retries. Absent otherwise.
	ConditionUnwatched = "Unwatched"
	// ConditionDrifted is True while a managed resource differs from the release; absent
	// otherwise.
	ConditionDrifted = "Drifted"
	// ConditionHeld is True while the release is held at an earlier revision, whatever the
	// spec says. The message names the previous revision, the time of the rollback, and how
	// to end the hold. Absent otherwise.
	ConditionHeld = "Held"
	// ConditionPaused is True while an annotation pauses the custom resource; absent
	// otherwise.
	ConditionPaused = "Paused"
	// ConditionUpdateAvailable is True while the operator has another chart for the kind
	// than the release uses, and the upgrade of this custom resource waits; absent
	// otherwise.
	ConditionUpdateAvailable = "UpdateAvailable"
	// ConditionTested is the result of the chart's tests on the newest revision: True if
	// they passed, False if they failed, absent if they did not run.
	ConditionTested = "Tested"
	// ConditionRollbackRefused is True while the annotation requests a rollback to a
	// revision that is not available; absent otherwise. The message lists the available
	// revisions.
	ConditionRollbackRefused = "RollbackRefused"
	// ConditionInvalidAnnotations is True while an annotation has an invalid value or an
	// unknown key with Chartwright's prefix; absent otherwise.
	ConditionInvalidAnnotations = "InvalidAnnotations"
	// ConditionStatusFieldsFailed is True while a status field of the watches entry cannot
	// be computed, so that the status lacks the field. The message names the field. The
	// release is not affected. Absent otherwise.
	ConditionStatusFieldsFailed = "StatusFieldsFailed"
)

// Reasons of Ready, Reconciling and Stalled.
const (
	// ReasonDeployed: the newest revision is deployed and matches the spec.
	ReasonDeployed = "Deployed"
	// ReasonInstalling: the operator installs the first revision.
	ReasonInstalling = "Installing"
	// ReasonUpgrading: the operator installs a new revision.
	ReasonUpgrading = "Upgrading"
	// ReasonUninstalling: the custom resource is being deleted.
	ReasonUninstalling = "Uninstalling"
	// ReasonInvalidValues: the chart's values.schema.json rejects the spec, and the message
	// has the path; or the spec exceeds a limit.
	ReasonInvalidValues = "InvalidValues"
	// ReasonRenderFailed: a template of the chart fails with these values.
	ReasonRenderFailed = "RenderFailed"
	// ReasonInstallFailed: the last attempt to install failed. The operator retries.
	ReasonInstallFailed = "InstallFailed"
	// ReasonUpgradeFailed: the last attempt to upgrade failed. The operator retries.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonAdopting: the operator adopts a release that was created by the helm CLI.
	ReasonAdopting = "Adopting"
	// ReasonAdoptionFailed: the last attempt to adopt the release failed. The operator
	// retries.
	ReasonAdoptionFailed = "AdoptionFailed"
	// ReasonNotAllowed: the kind's allow block in watches.yaml forbids a resource or a
	// lookup of the chart with these values; the message names the rule.
	ReasonNotAllowed = "NotAllowed"
	// ReasonRefused: the API server rejects a resource of the new revision. Nothing was
	// changed.
	ReasonRefused = "ObjectRefused"
	// ReasonUninstallFailed: the last attempt to uninstall failed. The operator retries.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonInterrupted: an action was interrupted. The operator runs it again.
	ReasonInterrupted = "Interrupted"
	// ReasonAborted: a user has aborted the last action by an annotation. The operator does
	// not retry until the spec is edited or the annotation is removed.
	ReasonAborted = "Aborted"
	// ReasonNameConflict: both release names that the custom resource may use are in use by
	// other releases.
	ReasonNameConflict = "ReleaseNameConflict"
	// ReasonObjectConflict: a resource of the chart exists and is not owned by the release.
	ReasonObjectConflict = "ObjectConflict"
	// ReasonTooLarge: the release does not fit into a Secret.
	ReasonTooLarge = "ReleaseTooLarge"
	// ReasonLocked: another client, such as helm upgrade, runs an operation on the release.
	ReasonLocked = "Locked"
	// ReasonRollingBack: the operator rolls back to an earlier revision.
	ReasonRollingBack = "RollingBack"
	// ReasonRollbackFailed: the last attempt to roll back failed. The operator retries.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonPaused: a change waits for the end of the pause. It is also the reason of the
	// condition ConditionPaused.
	ReasonPaused = "Paused"
	// ReasonOrphaning: the custom resource is being deleted, and the operator keeps its
	// release.
	ReasonOrphaning = "Orphaning"
	// ReasonWaitingForObjects: the release is uninstalled, and some of its resources are
	// still being deleted.
	ReasonWaitingForObjects = "WaitingForObjects"
	// ReasonProgressing: the release is deployed, and some of its resources are not ready
	// yet.
	ReasonProgressing = "Progressing"
	// ReasonProgressDeadlineExceeded: some resources were not ready before the progress
	// deadline; the message names them and the reason.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonObjectFailed: a resource has failed and will not become ready without a change.
	ReasonObjectFailed = "ObjectFailed"
)

// Reasons of UpdateAvailable.
const (
	// ReasonWaiting: the custom resource waits in the rollout queue.
	ReasonWaiting = "Waiting"
	// ReasonRolloutStopped: the rollout stopped because the upgrade of another custom
	// resource failed.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonRolloutPaused: a user has paused the rollout.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonHeld: the release is held at an earlier revision.
	ReasonHeld = "Held"
	// ReasonDowngradeRefused: the chart is older than the chart of the release, and the
	// kind allows no downgrade. It is also a reason of Ready, if the spec cannot be applied
	// for that reason.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// Reasons of Held.
const (
	// ReasonRolledBack: a user requested the rollback.
	ReasonRolledBack = "RolledBack"
	// ReasonRolledBackAfterFailure: the onFailure policy of the kind rolled back.
	ReasonRolledBackAfterFailure = "RolledBackAfterFailure"
)

// Reasons of Tested.
const (
	// ReasonTestsPassed: all tests of the chart passed.
	ReasonTestsPassed = "TestsPassed"
	// ReasonTestsFailed: a test failed; the message has its error.
	ReasonTestsFailed = "TestsFailed"
)

// Reasons of RollbackRefused and of InvalidAnnotations.
const (
	// ReasonNoSuchRevision: the revision is not stored, or was never deployed.
	ReasonNoSuchRevision = "NoSuchRevision"
	// ReasonInvalidValue: the message names the annotation and what was expected.
	ReasonInvalidValue = "InvalidValue"
	// ReasonRecordUntrusted: the release record of the revision has no valid signature of
	// this operator, and the chart does not render all of its resources.
	ReasonRecordUntrusted = "RecordUntrusted"
)

// Reasons of Drifted.
const (
	// ReasonDriftDetected: managed resources have drifted. The operator corrects them,
	// unless the drift mode of the kind is Warn.
	ReasonDriftDetected = "DriftDetected"
	// ReasonDriftFight: another client changes a managed resource again and again. The
	// operator corrects it with increasing delays.
	ReasonDriftFight = "DriftFight"
	// ReasonRepairFailed: the last drift correction failed.
	ReasonRepairFailed = "RepairFailed"
)

// ReasonWatchFailed is the reason of ConditionUnwatched.
const ReasonWatchFailed = "WatchFailed"

// ReasonForbidden is the reason of ConditionPermissionsMissing.
const ReasonForbidden = "Forbidden"

// ReasonExpressionFailed is the reason of ConditionStatusFieldsFailed.
const ReasonExpressionFailed = "ExpressionFailed"

// Reasons of Deployed, by the operator-sdk's names.
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
	EventObjectMended       = "ObjectMended"
	EventCRDMissing         = "CRDMissing"
	EventUnwatched          = ConditionUnwatched
	EventRecordSetAside     = "RecordSetAside"
	EventRecordUntrusted    = ReasonRecordUntrusted
	EventUninstallFailed    = ReasonUninstallFailed
	EventInterrupted        = ReasonInterrupted
	EventAborted            = ReasonAborted
	EventHookStuck          = "HookStuck"
	EventOverrideValuesUsed = "OverrideValuesInUse"
	EventRolledBack         = "RolledBack"
	EventRollbackFailed     = ReasonRollbackFailed
	EventRollbackRefused    = ConditionRollbackRefused
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
	EventInvalidAnnotations = ConditionInvalidAnnotations
	EventReady              = ConditionReady
	EventRolloutStopped     = ReasonRolloutStopped
)

// Events on the operator's own Pod.
const (
	EventKindBroken         = "KindBroken"
	EventPermissionsMissing = ConditionPermissionsMissing
	EventCRDOutdated        = "CRDOutdated"
	// EventSigningKeyUnusable: the operator cannot read, store or use the key that signs
	// release records.
	EventSigningKeyUnusable = "SigningKeyUnusable"
	// EventSigningKeyRestored: the Secret of the key was deleted, and the operator has
	// created it again with the same key.
	EventSigningKeyRestored = "SigningKeyRestored"
)

// Reasons of Ready if values cannot be read from a Secret or ConfigMap of valuesFrom.
const (
	// ReasonValuesSourceMissing: the object or its key does not exist.
	ReasonValuesSourceMissing = "ValuesSourceMissing"
	// ReasonValuesSourceInvalid: the content of the key is not valid values.
	ReasonValuesSourceInvalid = "ValuesSourceInvalid"
	// ReasonValuesSourceForbidden: the operator lacks the permission to read the object.
	ReasonValuesSourceForbidden = "ValuesSourceForbidden"
)
