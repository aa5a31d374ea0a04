package api

// Domain is the prefix of every key that Chartwright reads or writes.
const Domain = "chartwright.dev"

// Finalizer keeps a deleted custom resource until its release is uninstalled. The operator
// adds it before it installs anything.
const Finalizer = Domain + "/uninstall"

// FieldManager is the field manager that applies managed resources.
const FieldManager = "chartwright"

// FieldManagerInitial is the field manager of fields that are set when a managed resource
// is created and that others may change afterwards.
const FieldManagerInitial = FieldManager + "-initial"

// FieldManagerCLI is the field manager of annotations that "kubectl chartwright" sets, so
// that other tools can be configured to ignore them.
const FieldManagerCLI = FieldManager + "-cli"

// Labels and annotations by which Helm recognizes the resources of its releases. Helm does
// not export them.
const (
	LabelManagedBy             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm"
	AnnotationReleaseName      = "meta.helm.sh/release-name"
	AnnotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// Labels on managed resources. The operator adds them when it sends a resource to the API
// server. The stored manifest never contains them.
const (
	// LabelOwnerUID holds the UID of the custom resource that owns a managed resource.
	// Other controllers copy labels, so that the label does not prove ownership.
	LabelOwnerUID = Domain + "/owner-uid"
	// LabelHookOwnerUID is the label on Helm hooks instead of LabelOwnerUID, because hooks
	// belong to an action and not to the release.
	LabelHookOwnerUID = Domain + "/hook-owner-uid"
	// LabelOperator holds the name of the operator that manages a resource or a release
	// record (flag --operator-name).
	LabelOperator = Domain + "/operator"
)

// LabelSigningKey marks the Secret of the key with which an operator signs release records.
// Its value is the name of the operator. Neither lookup nor valuesFrom reads a Secret with
// this label.
const LabelSigningKey = Domain + "/signing-key"

// LabelLeft is "true" on a resource that stayed when its custom resource was deleted. If a
// custom resource adopts the resource, it adds LabelOwnerUID beside it.
const LabelLeft = Domain + "/left"

// LabelCreatedFor marks a namespace that was created for a release. Its value is the UID of
// the custom resource.
const LabelCreatedFor = Domain + "/created-for"

// Labels on release records, in addition to Helm's labels, LabelOwnerUID and LabelOperator.
const (
	// LabelRevision repeats the revision that this operator wrote. The helm CLI copies
	// labels to the revisions it creates, so that a value that differs from Helm's
	// "version" label marks a record that this operator did not write.
	LabelRevision = Domain + "/revision"
	// LabelAction holds the ID of the action that wrote the record, unique per action.
	LabelAction = Domain + "/action"
	// LabelInputDigest holds the digest of all inputs of the rendering.
	LabelInputDigest = Domain + "/input-digest"
	// LabelChartDigest holds the digest of the operator's inputs: the files of the chart
	// and the overrideValues.
	LabelChartDigest = Domain + "/chart-digest"
	// LabelValuesDigest holds the digest of the users' inputs: the spec, and the Secrets
	// and ConfigMaps of valuesFrom.
	LabelValuesDigest = Domain + "/values-digest"
	// LabelNumbers is NumbersHelm on a revision whose templates got whole numbers as float64.
	// Without it, they got int64. It needs no signature: it selects between two renders of the
	// same chart.
	LabelNumbers = Domain + "/numbers"
	NumbersHelm  = "Helm"
	// LabelSignature holds the signature of the record, see package signing. It is a label
	// because the helm CLI keeps labels and drops annotations when it writes a record.
	LabelSignature = Domain + "/signature"
	// LabelNeverReady is "true" on a revision that was superseded before its resources were
	// ready.
	LabelNeverReady = Domain + "/never-ready"
	// LabelRollbackRequest, LabelReconcileRequest, LabelForceRequest and LabelTestRequest
	// hold the digests of the answered requests, so that no request is answered twice. They
	// are labels for the same reason as LabelSignature.
	LabelRollbackRequest  = Domain + "/rollback-request"
	LabelReconcileRequest = Domain + "/reconcile-request"
	LabelForceRequest     = Domain + "/force-request"
	LabelTestRequest      = Domain + "/test-request"
	// LabelRollbackRefused is "true" if the rollback request was refused, and "untrusted"
	// if it was refused because the record of the revision is not authenticated.
	LabelRollbackRefused = Domain + "/rollback-refused"
	// LabelHeldRevision holds the held revision, LabelHeldFrom the revision before the
	// rollback, and LabelHeldSpec the digest of the spec that is not applied during the
	// hold.
	LabelHeldRevision = Domain + "/held-revision"
	LabelHeldFrom     = Domain + "/held-from"
	LabelHeldSpec     = Domain + "/held-spec"
	// LabelHeldScale holds the value of the field of the scale subresource at the start of
	// the hold, for kinds that have one.
	LabelHeldScale = Domain + "/held-scale"
	// LabelResumedChart holds the digest of the operator's chart, as LabelChartDigest does,
	// at the end of a hold. The upgrade to that chart does not wait for its position in the
	// rollout.
	LabelResumedChart = Domain + "/resumed-chart"
	// LabelHeldBy is HeldByFailure if the operator, and not a user, started the hold.
	LabelHeldBy   = Domain + "/held-by"
	HeldByFailure = "failure"
)
