package api

// ConditionStatusFieldsFailed is True while a status field of the kind's own
// cannot be computed, and is therefore not there; the message names it, and
// nothing else is concerned. Absent otherwise.
const ConditionStatusFieldsFailed = "StatusFieldsFailed"

// ReasonExpressionFailed is the reason of ConditionStatusFieldsFailed.
const ReasonExpressionFailed = "ExpressionFailed"
