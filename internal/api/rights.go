package api

// ConditionRightsMissing is True while the operator's role lacks rules that
// every custom resource of the kind needs. Ready tells whether anything has
// failed for that yet.
const ConditionRightsMissing = "RightsMissing"

// ReasonForbidden is its reason.
const ReasonForbidden = "Forbidden"

// Events on the operator's own Pod.
const (
	EventKindBroken    = "KindBroken"
	EventRightsMissing = ConditionRightsMissing
	EventCRDOutdated   = "CRDOutdated"
)
