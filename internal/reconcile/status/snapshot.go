package status

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// Snapshot is what the status of a custom resource depends on.
type Snapshot struct {
	CR *unstructured.Unstructured
	// Release is where the release is, or is to be, stored.
	Release types.NamespacedName
	// History is of that release, newest first.
	History []release.Record
	// Requests is what users request by annotations, and Marks which of the requests
	// were answered and what is held.
	Requests annotations.Annotations
	Marks    release.Marks
	// Observation is what the decision was made from.
	Observation plan.Observation
	// Failure is the last try to follow the spec, if it failed, and RepairFailure the
	// last try to correct drift.
	Failure, RepairFailure *Failure
	// Scaling describes a scaling that waits for the end of the hold.
	Scaling string
	// Secrets are the values that must not appear in a status.
	Secrets valuesfrom.Secrets

	// Drift is all drift, and Fighting the objects that drift again and again.
	Drift    []inventory.Drift
	Fighting []apply.Key
	// Health is that of the release's objects, Overdue reports whether those that are
	// not ready should be, and Diagnosis says why the first one is not.
	Health    inventory.Summary
	Overdue   bool
	Diagnosis string
	// Update is the chart that a rollout delivers later, and UpdateReason why later.
	Update       *api.UpdateStatus
	UpdateReason string
	// Fields are the kind's own.
	Fields Fields
	// MissingRules are the rules that the operator lacks, once that is known.
	MissingRules string
	RulesKnown   bool
	// Unwatched lists the kinds of the release's objects that cannot be watched.
	Unwatched string
	// Untrusted is why nothing from the newest record is applied, and UntrustedTarget
	// why the revision that a request names is not rolled back to.
	Untrusted       string
	UntrustedTarget string
}

// failing returns the failure of the last try to reach the target, nil if there is
// none.
func (v *Snapshot) failing() *Failure { return v.Failure.of(plan.Target(v.Observation)) }

// Failure is the last action on a release, if it failed.
type Failure struct {
	plan.Failure
	Reason  string
	Message string
	// Stalled: it does not end without a user.
	Stalled bool
	// Forbidden: a rule would have allowed it.
	Forbidden bool
	// Unserved: the API server does not serve the kind of an object.
	Unserved bool
}

// of returns the failure if it is one to reach the target.
func (f *Failure) of(target plan.TargetKey) *Failure {
	if f == nil || f.Target != target {
		return nil
	}
	return f
}

// Fields are the kind's own status fields.
type Fields struct {
	kindstatus.Result
	// Refused: the API server rejects them.
	Refused bool
}

// Refuse drops the fields, so that the rest of the status can be written, and
// returns false if there are none.
func (f *Fields) Refuse() bool {
	if len(f.Values) == 0 {
		return false
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.Values)), ", status.")
	f.Refused = true
	f.Result = kindstatus.Result{Failures: []kindstatus.Error{{
		Field: names, Message: "the CRD in the cluster rejects the type: install the CRD that chartwright crd prints",
	}}}
	return true
}

// failure returns which fields could not be computed, and why.
func (f *Fields) failure() string {
	return Cut(list(f.Failures, "; ", func(failure kindstatus.Error) string { return "status." + failure.Error() }))
}
