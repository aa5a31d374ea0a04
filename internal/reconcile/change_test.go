package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/plan"
)

// given returns a custom resource with this spec and two revisions.
func given(status string, spec map[string]any, changes ...func(*snapshot)) *snapshot {
	v := viewOf([]string{status, dep}, withSpec(spec))
	v.values = spec
	v.digests.Values = values.Digest(spec)
	for _, change := range changes {
		change(v)
	}
	return v
}

// TestObserveChange tests which changes since the start of an action are detected.
func TestObserveChange(t *testing.T) {
	before := func() map[string]any { return map[string]any{"message": "one", "replicas": int64(1)} }
	aborts := func(what string) func(*snapshot) {
		return func(v *snapshot) { v.Requests = annotations.Annotations{Abort: what} }
	}
	requests := func(request plan.Request) func(*snapshot) {
		return func(v *snapshot) { v.Observation.Request = &request }
	}
	held := func(v *snapshot) { v.Observation.Held = &plan.Held{Revision: 1} }
	disabled := func(v *snapshot) { v.Requests.Upgrade.DisableHooks, v.Requests.Uninstall.DisableHooks = true, true }
	// of sets the values, which depend on the spec and on valuesFrom.
	of := func(message string) func(*snapshot) {
		return func(v *snapshot) { v.values = map[string]any{"message": message, "replicas": int64(1)} }
	}
	for _, test := range []struct {
		name string
		step plan.Step
		spec map[string]any
		with []func(*snapshot)
		want plan.Change
	}{
		{"nothing", plan.StepUpgrade, before(), nil, plan.ChangeNone},
		{"the spec", plan.StepUpgrade, map[string]any{"message": "two", "replicas": int64(1)}, nil, plan.ChangeEdit},
		{"an added field", plan.StepInstall, map[string]any{"message": "one", "replicas": int64(1), "more": true}, nil, plan.ChangeEdit},
		{"the scale field", plan.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, nil, plan.ChangeScale},
		{"the scale field, by an edit of the custom resource", plan.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, []func(*snapshot){func(v *snapshot) { setEdits(v.CR, customresource.Edits{Scale: true}) }}, plan.ChangeEdit},
		{"the scale field is removed", plan.StepUpgrade, map[string]any{"message": "one"}, nil, plan.ChangeScale},
		{"the scale field and another", plan.StepUpgrade, map[string]any{"message": "two", "replicas": int64(9)}, nil, plan.ChangeEdit},
		{"an object in valuesFrom", plan.StepUpgrade, before(), []func(*snapshot){of("two")}, plan.ChangeEdit},
		{"an object in valuesFrom, held release", plan.StepTest, before(), []func(*snapshot){of("two"), held}, plan.ChangeNone},
		{"an object in valuesFrom, during a rollback", plan.StepRollback, before(), []func(*snapshot){of("two")}, plan.ChangeNone},
		{"the spec, during a rollback", plan.StepRollback, map[string]any{"message": "two"}, nil, plan.ChangeEdit},
		{"the spec, during an uninstall", plan.StepUninstall, map[string]any{"message": "two"}, []func(*snapshot){beingDeleted}, plan.ChangeNone},
		{"the spec is invalid", plan.StepUpgrade, map[string]any{"message": "two"}, []func(*snapshot){func(v *snapshot) {
			v.Observation.Invalid = &plan.Problem{Reason: api.ReasonInvalidValues, Message: "no"}
		}}, plan.ChangeNone},

		{"a deletion", plan.StepUpgrade, before(), []func(*snapshot){beingDeleted}, plan.ChangeDeletion},
		{"a deletion during the uninstall", plan.StepUninstall, before(), []func(*snapshot){beingDeleted}, plan.ChangeNone},
		{"hooks are disabled", plan.StepUpgrade, before(), []func(*snapshot){disabled}, plan.ChangeHooksDisabled},
		{"delete hooks are disabled", plan.StepUninstall, before(), []func(*snapshot){beingDeleted, disabled}, plan.ChangeHooksDisabled},
		{"a rollback is requested", plan.StepUpgrade, before(), []func(*snapshot){requests(plan.Request{Token: "t", Revision: 1})}, plan.ChangeRollback},
		{"a rollback to an unavailable revision is requested", plan.StepUpgrade, before(), []func(*snapshot){requests(plan.Request{Token: "t"})}, plan.ChangeNone},
		{"the end of a hold is requested without a hold", plan.StepUpgrade, before(), []func(*snapshot){requests(plan.Request{Token: "t", Resume: true})}, plan.ChangeNone},
		{"the end of a hold is requested during the rollback", plan.StepRollback, before(), []func(*snapshot){requests(plan.Request{Token: "t", Resume: true})}, plan.ChangeRollback},

		{"its revision is aborted", plan.StepUpgrade, before(), []func(*snapshot){aborts("2")}, plan.ChangeAbort},
		{"another revision is aborted", plan.StepUpgrade, before(), []func(*snapshot){aborts("1")}, plan.ChangeNone},
		{"the abort of an uninstall during an upgrade", plan.StepUpgrade, before(), []func(*snapshot){aborts(api.AbortUninstall)}, plan.ChangeNone},
		{"the uninstall is aborted", plan.StepUninstall, before(), []func(*snapshot){beingDeleted, aborts(api.AbortUninstall)}, plan.ChangeAbort},
		{"the tests are aborted", plan.StepTest, before(), []func(*snapshot){aborts(api.AbortTest)}, plan.ChangeAbort},
		{"an abort comes before an edit", plan.StepUpgrade, map[string]any{"message": "two"}, []func(*snapshot){aborts("2")}, plan.ChangeAbort},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := scaled(".spec.replicas")
			withFacts := func(v *snapshot) *snapshot {
				spec, scale := r.specAndScale(v)
				v.facts = &specFacts{spec: spec, scale: scale, unscaled: r.withoutScale(v.values)}
				return v
			}
			running := &plan.Running{Step: test.step, Inputs: r.inputs(withFacts(given(api.StatusPendingUpgrade, before())), test.step), Hook: &plan.Hook{}}
			v := withFacts(given(api.StatusPendingUpgrade, test.spec, test.with...))
			v.Observation.Running = running
			r.observeChange(v)
			if v.Observation.Change != test.want {
				t.Errorf("got %q, want %q", v.Observation.Change, test.want)
			}
			// Without a hook, no change is detected.
			running.Hook, v.Observation.Change = nil, ""
			r.observeChange(v)
			if v.Observation.Change != plan.ChangeNone {
				t.Errorf("without a hook: got %q", v.Observation.Change)
			}
		})
	}
}
