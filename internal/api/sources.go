package api

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
