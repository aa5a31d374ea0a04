package api

// Condition types on a custom resource. Reconciling and Stalled follow the
// kstatus convention: they are present only while they are True.
const (
	// ConditionReady is True when the newest revision is what the spec asks for,
	// and all its objects are ready.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec;
	// absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True while only a person can help, for example by
	// correcting the spec; absent otherwise. Retrying goes on all the same.
	ConditionStalled = "Stalled"
	// ConditionDeployed is True while some revision of the release is
	// deployed, even if it is not the one that the spec asks for.
	ConditionDeployed = "Deployed"
	// ConditionRightsMissing is True while the operator's role lacks rules that
	// every custom resource of the kind needs; its reason is ReasonForbidden.
	// Ready tells whether anything has failed for that yet; the message has the
	// rules to add. Absent otherwise.
	ConditionRightsMissing = "RightsMissing"
	// ConditionUnwatched is True while the release has objects of a kind that the
	// operator cannot watch; its reason is ReasonWatchFailed. Drift of these objects
	// is not detected, and they count as ready. The message lists the kinds, and why
	// each cannot be watched; the operator tries again. Absent otherwise.
	ConditionUnwatched = "Unwatched"
	// ConditionDrifted is True while an object of the release is not what the
	// release says; absent otherwise.
	ConditionDrifted = "Drifted"
	// ConditionHeld is True while an earlier revision runs, whatever the spec
	// says; the message tells from where, since when, and what ends it. Absent
	// otherwise.
	ConditionHeld = "Held"
	// ConditionPaused is True while nothing is changed, as an annotation asks;
	// absent otherwise.
	ConditionPaused = "Paused"
	// ConditionUpdateAvailable is True while the operator has another chart for
	// the kind than the release runs, and it is not this resource's turn; absent
	// otherwise.
	ConditionUpdateAvailable = "UpdateAvailable"
	// ConditionTested tells how the chart's tests went on the newest revision:
	// True where they passed, False where they failed, absent where they were
	// not run.
	ConditionTested = "Tested"
	// ConditionRollbackRefused is True while the annotation asks for a revision
	// that cannot be had; absent otherwise. The message lists those that can.
	ConditionRollbackRefused = "RollbackRefused"
	// ConditionInvalidAnnotations is True while an annotation has a value that
	// cannot be understood, or a key of ours that nobody knows; absent otherwise.
	ConditionInvalidAnnotations = "InvalidAnnotations"
	// ConditionStatusFieldsFailed is True while a status field of the kind's own
	// cannot be computed, and is therefore not there; the message names it, and
	// nothing else is concerned. Absent otherwise.
	ConditionStatusFieldsFailed = "StatusFieldsFailed"
)

// Reasons of Ready, Reconciling and Stalled.
const (
	// ReasonDeployed: all is as the spec asks.
	ReasonDeployed = "Deployed"
	// ReasonInstalling: the first revision is being installed.
	ReasonInstalling = "Installing"
	// ReasonUpgrading: a new revision is being installed.
	ReasonUpgrading = "Upgrading"
	// ReasonUninstalling: the custom resource is being deleted.
	ReasonUninstalling = "Uninstalling"
	// ReasonInvalidValues: the chart's values.schema.json refuses the spec, and the
	// message has the path; or the spec exceeds a limit.
	ReasonInvalidValues = "InvalidValues"
	// ReasonRenderFailed: a template of the chart fails with these values.
	ReasonRenderFailed = "RenderFailed"
	// ReasonInstallFailed: the last try to install ended in an error; it is tried
	// again.
	ReasonInstallFailed = "InstallFailed"
	// ReasonUpgradeFailed: the last try to upgrade ended in an error; it is tried
	// again.
	ReasonUpgradeFailed = "UpgradeFailed"
	// ReasonAdopting: a release that no operator made, but the helm CLI did, is
	// being taken over.
	ReasonAdopting = "Adopting"
	// ReasonAdoptionFailed: the last try to take it over ended in an error.
	ReasonAdoptionFailed = "AdoptionFailed"
	// ReasonNotAllowed: the kind's allow block in the watches file forbids what
	// the chart would do with these values; the message names the rule.
	ReasonNotAllowed = "NotAllowed"
	// ReasonRefused: the API server refuses an object of the new revision;
	// nothing was changed.
	ReasonRefused = "ObjectRefused"
	// ReasonUninstallFailed: the last try to uninstall ended in an error; it is
	// tried again.
	ReasonUninstallFailed = "UninstallFailed"
	// ReasonInterrupted: an action was cut short and will be done again.
	ReasonInterrupted = "Interrupted"
	// ReasonAborted: a person has aborted the last action by an annotation. It is
	// not tried again until the spec is edited or the annotation is removed.
	ReasonAborted = "Aborted"
	// ReasonNameConflict: both release names that the custom resource may use
	// belong to others.
	ReasonNameConflict = "ReleaseNameConflict"
	// ReasonObjectConflict: an object of the chart exists and is not owned by the release.
	ReasonObjectConflict = "ObjectConflict"
	// ReasonTooLarge: the release does not fit into a Secret.
	ReasonTooLarge = "ReleaseTooLarge"
	// ReasonLocked: somebody else's operation on the release, such as helm
	// upgrade, is under way.
	ReasonLocked = "Locked"
	// ReasonRollingBack: an earlier revision is being brought back.
	ReasonRollingBack = "RollingBack"
	// ReasonRollbackFailed: the last try to bring it back ended in an error.
	ReasonRollbackFailed = "RollbackFailed"
	// ReasonPaused: a change waits for the pause to end. It is the reason of the
	// condition ConditionPaused, too.
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
	// ReasonProgressDeadlineExceeded: some of its objects should have been ready
	// by now; the message says which is not, and why.
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
	// ReasonTestsPassed: all of the chart's tests have ended well.
	ReasonTestsPassed = "TestsPassed"
	// ReasonTestsFailed: one has not; the message has its error.
	ReasonTestsFailed = "TestsFailed"
)

// Reasons of RollbackRefused and of InvalidAnnotations.
const (
	// ReasonNoSuchRevision: the revision is not stored, or was never deployed.
	ReasonNoSuchRevision = "NoSuchRevision"
	// ReasonInvalidValue: the message names the annotation, and what was expected.
	ReasonInvalidValue = "InvalidValue"
	// ReasonRecordUntrusted: the release record of the revision is not what this
	// operator has written, and the chart does not render all of its objects.
	ReasonRecordUntrusted = "RecordUntrusted"
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

// ReasonWatchFailed is the reason of ConditionUnwatched.
const ReasonWatchFailed = "WatchFailed"

// ReasonForbidden is the reason of ConditionRightsMissing.
const ReasonForbidden = "Forbidden"

// ReasonExpressionFailed is the reason of ConditionStatusFieldsFailed.
const ReasonExpressionFailed = "ExpressionFailed"

// Reasons of Deployed, by the operator-sdk's names.
const (
	// ReasonInstallSuccessful: the first revision is deployed.
	ReasonInstallSuccessful = "InstallSuccessful"
	// ReasonUpgradeSuccessful: a later one is.
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
	EventKindBroken    = "KindBroken"
	EventRightsMissing = ConditionRightsMissing
	EventCRDOutdated   = "CRDOutdated"
	// EventSigningKeyUnusable: the key that signs release records cannot be read,
	// stored or used.
	EventSigningKeyUnusable = "SigningKeyUnusable"
	// EventSigningKeyRestored: the Secret of the key was deleted, and was created
	// again with the same key.
	EventSigningKeyRestored = "SigningKeyRestored"
)

// Reasons of Ready where values cannot be had from a Secret or ConfigMap that
// the kind's watches entry names.
const (
	// ReasonValuesSourceMissing: the object is not there, or lacks the key.
	ReasonValuesSourceMissing = "ValuesSourceMissing"
	// ReasonValuesSourceInvalid: what the key holds cannot be made into values.
	ReasonValuesSourceInvalid = "ValuesSourceInvalid"
	// ReasonValuesSourceForbidden: the operator may not read the object.
	ReasonValuesSourceForbidden = "ValuesSourceForbidden"
)
