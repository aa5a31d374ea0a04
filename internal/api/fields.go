package api

// ConditionStatusFieldsFailed is True while a status field of the kind's own
// cannot be computed. The field is absent then; nothing else is concerned.
const ConditionStatusFieldsFailed = "StatusFieldsFailed"

// ReasonExpressionFailed is its reason.
const ReasonExpressionFailed = "ExpressionFailed"
