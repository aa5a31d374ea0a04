package api

// Domain is the prefix of every key that Chartwright writes or reads.
const Domain = "chartwright.dev"

// Finalizer holds a custom resource until its release is uninstalled. It is
// put on the resource before anything is installed.
const Finalizer = Domain + "/uninstall"

// FieldManager is the manager name under which dependents are applied.
const FieldManager = "chartwright"

// FieldManagerInitial is the manager name of fields that are set when a
// dependent is made and left to others afterwards.
const FieldManagerInitial = FieldManager + "-initial"

// FieldManagerCLI is the manager name of what people ask for by "kubectl
// chartwright", so that other tools can be told to leave it alone.
const FieldManagerCLI = FieldManager + "-cli"

// Marks by which Helm recognizes the objects of its releases. Helm does not export
// them.
const (
	LabelManagedBy             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm"
	AnnotationReleaseName      = "meta.helm.sh/release-name"
	AnnotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// Labels on managed resources. The operator adds them when it sends an object to
// the API server. They are never part of the stored manifest.
const (
	// LabelOwnerUID holds the UID of the custom resource that a dependent
	// belongs to. Other controllers copy labels, so the label alone does not
	// prove ownership.
	LabelOwnerUID = Domain + "/owner-uid"
	// LabelHookOwnerUID takes the place of LabelOwnerUID on Helm hooks, which
	// belong to an action and not to the release.
	LabelHookOwnerUID = Domain + "/hook-owner-uid"
	// LabelOperator holds the name of the operator that manages an object or a
	// release record (flag --operator-name).
	LabelOperator = Domain + "/operator"
)

// LabelSigningKey marks the Secret that holds the key with which an operator
// signs release records. Its value is the name of the operator. Neither lookup
// nor valuesFrom reads a Secret with this label.
const LabelSigningKey = Domain + "/signing-key"

// LabelCreatedFor is on a namespace that was made for a release: the UID of its
// custom resource.
const LabelCreatedFor = Domain + "/created-for"

// Labels on release records, beside Helm's own and the two owner labels.
const (
	// LabelRevision repeats the revision that this operator wrote. The helm
	// CLI copies labels to the revisions it makes, so a value that differs
	// from Helm's "version" label marks a record that somebody else wrote.
	LabelRevision = Domain + "/revision"
	// LabelAction holds the id of the action that wrote the record, unique
	// per action.
	LabelAction = Domain + "/action"
	// LabelInputDigest holds the digest of everything that the revision was
	// rendered from.
	LabelInputDigest = Domain + "/input-digest"
	// LabelChartDigest holds the digest of what the operator brings: the chart's
	// files and the overrideValues.
	LabelChartDigest = Domain + "/chart-digest"
	// LabelValuesDigest holds the digest of what people give: the spec and what
	// valuesFrom names.
	LabelValuesDigest = Domain + "/values-digest"
	// LabelSignature holds the signature of what the record stores, see package
	// signing. It is a label, since the helm CLI keeps labels and drops
	// annotations when it writes a record.
	LabelSignature = Domain + "/signature"
	// LabelNeverReady is "true" on a revision that another took the place of
	// before its objects were ready.
	LabelNeverReady = Domain + "/never-ready"
	// LabelRollbackRequest, LabelReconcileRequest, LabelForceRequest and
	// LabelTestRequest hold the digests of the requests that were answered, so
	// that none is answered twice. They are labels and no annotations, since
	// the helm CLI keeps just those when it writes a record.
	LabelRollbackRequest  = Domain + "/rollback-request"
	LabelReconcileRequest = Domain + "/reconcile-request"
	LabelForceRequest     = Domain + "/force-request"
	LabelTestRequest      = Domain + "/test-request"
	// LabelRollbackRefused is "true" where the answer was no, and "untrusted" where
	// that is since the record of the revision is not authenticated.
	LabelRollbackRefused = Domain + "/rollback-refused"
	// LabelHeldRevision holds the revision that runs again and stays,
	// LabelHeldFrom the one that it took the place of, and LabelHeldSpec the
	// digest of the spec that is not followed meanwhile.
	LabelHeldRevision = Domain + "/held-revision"
	LabelHeldFrom     = Domain + "/held-from"
	LabelHeldSpec     = Domain + "/held-spec"
	// LabelHeldScale holds the value that the field of the scale subresource had
	// when the hold began, on kinds that have one.
	LabelHeldScale = Domain + "/held-scale"
	// LabelResumedChart holds the digest of the operator's chart, as LabelChartDigest
	// does, that was there when a hold ended: to that one it goes at once.
	LabelResumedChart = Domain + "/resumed-chart"
	// LabelHeldBy is HeldByFailure where no person asked for it.
	LabelHeldBy   = Domain + "/held-by"
	HeldByFailure = "failure"
)
