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
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
)

// Snapshot is what the status of a custom resource depends on.
type Snapshot struct {
	// CR is the custom resource, whose content may not be in memory; see Complete.
	CR *unstructured.Unstructured
	// Read reads the custom resource with all its content from the API server. Nil if CR has it.
	Read func() (*unstructured.Unstructured, error)
	// Release is the namespace and name of the release, which may not exist yet.
	Release types.NamespacedName
	// History are the records of the release, newest first, and Excess those that exceed the
	// kind's maxHistory.
	History, Excess []release.Record
	// Requests are the requests in annotations, and Marks the answered requests and the
	// hold.
	Requests annotations.Annotations
	Marks    release.Marks
	// Previous is the revision that a rollback without a number selects, if the newest change has
	// made no revision, else 0.
	Previous int
	// Observation is the input of the decision.
	Observation plan.Observation
	// Unread reports that the inputs could not be read, so that Observation.Invalid may end
	// without an edit.
	Unread bool
	// Failure is the last attempt to follow the spec, if it failed, and RepairFailure the
	// last drift correction, if it failed.
	Failure, RepairFailure *Failure
	// Scaling describes a scaling that waits for the end of the hold.
	Scaling string
	// Secrets are the values that must not appear in a status.
	Secrets valuesfrom.Secrets

	// Drift is all drift, and Fighting the objects that drift again and again.
	Drift    []inventory.Drift
	Fighting []Contested
	// Health is the health of the release's objects. Overdue reports that objects are not
	// ready and their deadline has passed. Diagnosis is why the first one is not ready.
	Health    inventory.Summary
	Overdue   bool
	Diagnosis string
	// DependsOn is what the custom resource depends on.
	DependsOn []api.DependencyStatus
	// Update is the chart that a rollout delivers later, and UpdateReason the reason of
	// the delay.
	Update       *api.UpdateStatus
	UpdateReason string
	// Fields are the kind's own status fields.
	Fields Fields
	// Outputs are the outputs of the release.
	Outputs Outputs
	// NumbersChosen reports that the watches entry names the mode of the numbers.
	NumbersChosen bool
	// MissingRules are the RBAC rules that the operator lacks. They are valid if
	// RulesKnown.
	MissingRules string
	RulesKnown   bool
	// Unwatched lists the kinds of the release's objects that cannot be watched.
	Unwatched string
	// Untrusted is why nothing from the newest record is applied, and UntrustedTarget why
	// the requested rollback is refused.
	Untrusted       string
	UntrustedTarget string
}

// failing returns the failure of the last attempt to reach the target, or nil.
func (v *Snapshot) failing() *Failure { return v.Failure.of(plan.Target(v.Observation)) }

// uncorrected returns the failure of the last correction of drift that still exists, or nil.
func (v *Snapshot) uncorrected() *Failure {
	if len(v.Drift) == 0 && !v.Observation.Unverified {
		return nil
	}
	return v.RepairFailure.of(plan.TargetOf(plan.StepRepair, v.Observation))
}

// Failure is the last action on a release, if it failed.
type Failure struct {
	plan.Failure
	Reason  string
	Message string
	// Stalled reports that a retry fails again unless a user changes something.
	Stalled bool
	// Forbidden reports that an RBAC rule is missing.
	Forbidden bool
	// Plan is the plan that waits for an approval, or nil.
	Plan *api.PlanStatus
	// Guarded holds the UIDs of the objects that make the action wait.
	Guarded map[apply.Key]types.UID
	// Foreign reports that the release does not own one of its objects.
	Foreign bool
	// Unserved reports that the API server does not serve the kind of an object.
	Unserved bool
}

// of returns the failure if it has this target, or nil.
func (f *Failure) of(target plan.TargetKey) *Failure {
	if f == nil || f.Target != target {
		return nil
	}
	return f
}

// Complete returns the custom resource with all its content.
func (v *Snapshot) Complete() (*unstructured.Unstructured, error) {
	if v.Read == nil {
		return v.CR, nil
	}
	return v.Read()
}

// Authored returns what the author has written, or less if it cannot be read.
func (v *Snapshot) Authored() []string {
	cr, err := v.Complete()
	if err != nil {
		cr = v.CR
	}
	return customresource.Texts(cr)
}

// Redact returns a text without secrets. Texts that the author has written stay whole.
func (v *Snapshot) Redact(text string) string { return v.Secrets.RedactExcept(text, v.Authored) }

// Fields are the kind's own status fields.
type Fields struct {
	kindstatus.Result
	// Refused reports that the API server rejects the fields.
	Refused bool
}

// messageRefused explains why the API server rejects fields of the status.
const messageRefused = "the CRD in the cluster rejects the type: install the CRD that chartwright crd prints"

// Refuse drops the fields, so that the rest of the status can be written, and
// returns false if it had none.
func (f *Fields) Refuse() bool {
	if len(f.Values) == 0 {
		return false
	}
	names := strings.Join(slices.Sorted(maps.Keys(f.Values)), ", status.")
	f.Refused = true
	f.Result = kindstatus.Result{Failures: []kindstatus.Error{{
		Field: names, Message: messageRefused,
	}}}
	return true
}

// fieldFailures describes the fields and outputs that could not be computed.
func (v *Snapshot) fieldFailures() string {
	return Cut(list(slices.Concat(v.Fields.Failures, v.Outputs.Failures), "; ", func(failure kindstatus.Error) string { return "status." + failure.Error() }))
}
