package api

// Condition types on a custom resource. Reconciling and Stalled follow the
// kstatus convention: they are present only while they are True.
const (
	// ConditionReady is True when the release serves the current spec.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when only a person can help, for example by
	// correcting the spec. Retrying goes on all the same.
	ConditionStalled = "Stalled"
	// ConditionDeployed is True while some revision of the release is
	// deployed, even if it is not the one that the spec asks for.
	ConditionDeployed = "Deployed"
	// ConditionRightsMissing is True while the operator's role lacks rules that
	// every custom resource of the kind needs; its reason is ReasonForbidden.
	// Ready tells whether anything has failed for that yet.
	ConditionRightsMissing = "RightsMissing"
	// ConditionDrifted is True while an object of the release is not what the
	// release says.
	ConditionDrifted = "Drifted"
	// ConditionHeld is True while an earlier revision runs, whatever the spec
	// says.
	ConditionHeld = "Held"
	// ConditionPaused is True while nothing is changed, as an annotation asks.
	ConditionPaused = "Paused"
	// ConditionUpdateAvailable is True while the operator has another chart for
	// the kind than the release runs, and it is not this resource's turn.
	ConditionUpdateAvailable = "UpdateAvailable"
	// ConditionTested tells how the chart's tests went on the newest revision.
	ConditionTested = "Tested"
	// ConditionRollbackRefused is True while the annotation asks for a revision
	// that cannot be had.
	ConditionRollbackRefused = "RollbackRefused"
	// ConditionInvalidAnnotations is True while an annotation has a value that
	// cannot be understood, or a key of ours that nobody knows.
	ConditionInvalidAnnotations = "InvalidAnnotations"
)

// Reasons of Ready, Reconciling and Stalled.
const (
	// ReasonDeployed: the newest revision matches the spec and is deployed.
	ReasonDeployed = "Deployed"
	// ReasonInstalling: the first revision is being installed.
	ReasonInstalling = "Installing"
	// ReasonUpgrading: a new revision is being installed.
	ReasonUpgrading = "Upgrading"
	// ReasonUninstalling: the custom resource is being deleted.
	ReasonUninstalling = "Uninstalling"
	// ReasonInvalidValues: the chart's values.schema.json refuses the spec.
	ReasonInvalidValues = "InvalidValues"
	// ReasonRenderFailed: a template of the chart fails with these values.
	ReasonRenderFailed = "RenderFailed"
	// ReasonInstallFailed: the last try to install ended in an error.
	ReasonInstallFailed = "InstallFailed"
	// ReasonUpgradeFailed: the last try to upgrade ended in an error.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonAdopting: a release that no operator made is being taken over.
	ReasonAdopting = "Adopting"
	// ReasonAdoptionFailed: the last try to take it over ended in an error.
	ReasonAdoptionFailed = "AdoptionFailed"
	// ReasonNotAllowed: the kind's allow block in the watches file forbids what
	// the chart would do with these values.
	ReasonNotAllowed = "NotAllowed"
	// ReasonRefused: the API server refuses an object of the new revision;
	// nothing was changed.
	ReasonRefused = "ObjectRefused"
	// ReasonUninstallFailed: the last try to uninstall ended in an error.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonInterrupted: an action was cut short and will be done again.
	ReasonInterrupted = "Interrupted"
	// ReasonNameConflict: both release names that the custom resource may use
	// belong to others.
	ReasonNameConflict = "ReleaseNameConflict"
	// ReasonObjectConflict: an object of the chart belongs to somebody else.
	ReasonObjectConflict = "ObjectConflict"
	// ReasonTooLarge: the release does not fit into a Secret.
	ReasonTooLarge = "ReleaseTooLarge"
	// ReasonLocked: somebody else's operation on the release is under way.
	ReasonLocked = "Locked"
	// ReasonRollingBack: an earlier revision is being brought back.
	ReasonRollingBack = "RollingBack"
	// ReasonRollbackFailed: the last try to bring it back ended in an error.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonPaused: a change waits for the pause to end.
	ReasonPaused = "Paused"
	// ReasonOrphaning: the custom resource is being deleted, and its release
	// stays.
	ReasonOrphaning = "Orphaning"
	// ReasonWaitingForObjects: the release is uninstalled, and some of its
	// objects are not gone yet.
	ReasonWaitingForObjects = "WaitingForObjects"
	// ReasonProgressing: the release is deployed, and some of its objects are
	// not ready yet.
	ReasonProgressing = "Progressing"
	// ReasonProgressDeadlineExceeded: they should have been by now.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonObjectFailed: an object will not become ready unless somebody does
	// something about it.
	ReasonObjectFailed = "ObjectFailed"
)

// Reasons of UpdateAvailable.
const (
	// ReasonWaiting: others are before it.
	ReasonWaiting = "Waiting"
	// ReasonRolloutStopped: the upgrade of another has failed.
	ReasonRolloutStopped = "RolloutStopped"
	// ReasonRolloutPaused: a person has stopped the rollout.
	ReasonRolloutPaused = "RolloutPaused"
	// ReasonHeld: an earlier revision is held.
	ReasonHeld = "Held"
	// ReasonDowngradeRefused: the chart is older than the release's, and the
	// kind allows no downgrade. It is a reason of Ready, too, where the spec
	// cannot be followed for that.
	ReasonDowngradeRefused = "DowngradeRefused"
)

// Reasons of Held.
const (
	// ReasonRolledBack: a person asked for it.
	ReasonRolledBack = "RolledBack"
	// ReasonRolledBackAfterFailure: the kind's onFailure asked for it.
	ReasonRolledBackAfterFailure = "RolledBackAfterFailure"
)

// Reasons of Tested.
const (
	ReasonTestsPassed = "TestsPassed"
	ReasonTestsFailed = "TestsFailed"
)

// Reasons of RollbackRefused and of InvalidAnnotations.
const (
	ReasonNoSuchRevision = "NoSuchRevision"
	ReasonInvalidValue   = "InvalidValue"
)

// Reasons of Drifted.
const (
	// ReasonDriftDetected: damaged objects are being repaired, or the kind's
	// drift mode is to warn only.
	ReasonDriftDetected = "DriftDetected"
	// ReasonDriftFight: somebody damages an object again and again; it is
	// repaired ever more slowly.
	ReasonDriftFight = "DriftFight"
	// ReasonRepairFailed: the last repair ended in an error.
	ReasonRepairFailed = "RepairFailed"
)

// ReasonForbidden is the reason of RightsMissing.
const ReasonForbidden = "Forbidden"

// Reasons of Deployed, by the operator-sdk's names.
const (
	ReasonInstallSuccessful = "InstallSuccessful"
	ReasonUpgradeSuccessful = "UpgradeSuccessful"
	// ReasonNotInstalled: no revision is deployed.
	ReasonNotInstalled = "NotInstalled"
)

// Event reasons. One event is written per transition. Where an action failed
// for a known cause, and for the states that no action has brought about, the
// condition's reason is the event's, too.
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
	EventUnwatched          = "Unwatched"
	EventRecordSetAside     = "RecordSetAside"
	EventUninstallFailed    = ReasonUninstallFailed
	EventInterrupted        = ReasonInterrupted
	EventOverrideValuesUsed = "OverrideValuesInUse"
	EventRolledBack         = "RolledBack"
	EventRollbackFailed     = ReasonRollbackFailed
	EventRollbackRefused    = ConditionRollbackRefused
	EventResumed            = "Resumed"
	EventPaused             = ConditionPaused
	EventUnpaused           = "Unpaused"
	EventTestsPassed        = ReasonTestsPassed
	EventTestsFailed        = ReasonTestsFailed
	EventOrphaned           = "Orphaned"
	EventHooksSkipped       = "HooksSkipped"
	EventNamespaceKept      = "NamespaceKept"
	EventForced             = "Forced"
	EventInvalidAnnotations = ConditionInvalidAnnotations
	EventReady              = ConditionReady
	EventRolloutStopped     = ReasonRolloutStopped
)

// Events on the operator's own Pod.
const (
	EventKindBroken    = "KindBroken"
	EventRightsMissing = ConditionRightsMissing
	EventCRDOutdated   = "CRDOutdated"
)
