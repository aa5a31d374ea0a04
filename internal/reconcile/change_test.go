package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/plan"
)

// given is a custom resource with that spec, in the state of a second revision.
func given(status string, spec map[string]any, changes ...func(*view)) *view {
	v := viewOf([]string{status, dep}, withSpec(spec))
	v.values = spec
	v.digests.Values = values.Digest(spec)
	for _, change := range changes {
		change(v)
	}
	return v
}

// TestChange: what people have changed since an action began.
func TestChange(t *testing.T) {
	before := func() map[string]any { return map[string]any{"message": "one", "replicas": int64(1)} }
	aborts := func(what string) func(*view) { return func(v *view) { v.asks = annotations.Annotations{Abort: what} } }
	requests := func(request plan.Request) func(*view) {
		return func(v *view) { v.observation.Request = &request }
	}
	held := func(v *view) { v.observation.Held = &plan.Held{Revision: 1} }
	disabled := func(v *view) { v.asks.Upgrade.DisableHooks, v.asks.Uninstall.DisableHooks = true, true }
	// of is what values are computed from: the spec, and what valuesFrom names.
	of := func(message string) func(*view) {
		return func(v *view) { v.values = map[string]any{"message": message, "replicas": int64(1)} }
	}
	for _, test := range []struct {
		name string
		step plan.Step
		spec map[string]any
		with []func(*view)
		want plan.Change
	}{
		{"nothing", plan.StepUpgrade, before(), nil, plan.ChangeNone},
		{"the spec", plan.StepUpgrade, map[string]any{"message": "two", "replicas": int64(1)}, nil, plan.ChangeEdit},
		{"a field more", plan.StepInstall, map[string]any{"message": "one", "replicas": int64(1), "more": true}, nil, plan.ChangeEdit},
		{"the scale field", plan.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, nil, plan.ChangeScale},
		{"the scale field, by a writer of the resource", plan.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, []func(*view){func(v *view) { customresource.SetEdits(v.cr, customresource.Edits{Scale: true}) }}, plan.ChangeEdit},
		{"the scale field is gone", plan.StepUpgrade, map[string]any{"message": "one"}, nil, plan.ChangeScale},
		{"the scale field and another", plan.StepUpgrade, map[string]any{"message": "two", "replicas": int64(9)}, nil, plan.ChangeEdit},
		{"what valuesFrom names", plan.StepUpgrade, before(), []func(*view){of("two")}, plan.ChangeEdit},
		{"what valuesFrom names, of a held release", plan.StepTest, before(), []func(*view){of("two"), held}, plan.ChangeNone},
		{"what valuesFrom names, during a rollback", plan.StepRollback, before(), []func(*view){of("two")}, plan.ChangeNone},
		{"the spec, during a rollback", plan.StepRollback, map[string]any{"message": "two"}, nil, plan.ChangeEdit},
		{"the spec, during an uninstall", plan.StepUninstall, map[string]any{"message": "two"}, []func(*view){beingDeleted}, plan.ChangeNone},
		{"the spec is invalid", plan.StepUpgrade, map[string]any{"message": "two"}, []func(*view){func(v *view) { v.observation.Invalid = "no" }}, plan.ChangeNone},

		{"it is deleted", plan.StepUpgrade, before(), []func(*view){beingDeleted}, plan.ChangeDeletion},
		{"it is deleted, which is what runs", plan.StepUninstall, before(), []func(*view){beingDeleted}, plan.ChangeNone},
		{"hooks are disabled", plan.StepUpgrade, before(), []func(*view){disabled}, plan.ChangeHooksDisabled},
		{"delete hooks are disabled", plan.StepUninstall, before(), []func(*view){beingDeleted, disabled}, plan.ChangeHooksDisabled},
		{"a rollback is requested", plan.StepUpgrade, before(), []func(*view){requests(plan.Request{Token: "t", Revision: 1})}, plan.ChangeRollback},
		{"a rollback is requested that cannot be met", plan.StepUpgrade, before(), []func(*view){requests(plan.Request{Token: "t"})}, plan.ChangeNone},
		{"the end of a hold is requested where there is none", plan.StepUpgrade, before(), []func(*view){requests(plan.Request{Token: "t", Resume: true})}, plan.ChangeNone},
		{"the end of a hold is requested while it comes about", plan.StepRollback, before(), []func(*view){requests(plan.Request{Token: "t", Resume: true})}, plan.ChangeRollback},

		{"its revision is aborted", plan.StepUpgrade, before(), []func(*view){aborts("2")}, plan.ChangeAbort},
		{"another revision is aborted", plan.StepUpgrade, before(), []func(*view){aborts("1")}, plan.ChangeNone},
		{"an uninstall is aborted, which it is not", plan.StepUpgrade, before(), []func(*view){aborts(api.AbortUninstall)}, plan.ChangeNone},
		{"the uninstall is aborted", plan.StepUninstall, before(), []func(*view){beingDeleted, aborts(api.AbortUninstall)}, plan.ChangeAbort},
		{"the tests are aborted", plan.StepTest, before(), []func(*view){aborts(api.AbortTest)}, plan.ChangeAbort},
		{"an abort comes before an edit", plan.StepUpgrade, map[string]any{"message": "two"}, []func(*view){aborts("2")}, plan.ChangeAbort},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := scaled(".spec.replicas")
			running := &plan.Running{Step: test.step, Inputs: r.inputs(given(api.StatusPendingUpgrade, before()), test.step), Hook: &plan.Hook{}}
			v := given(api.StatusPendingUpgrade, test.spec, test.with...)
			v.observation.Running = running
			r.observeChange(v)
			if v.observation.Change != test.want {
				t.Errorf("got %q, want %q", v.observation.Change, test.want)
			}
			// Nobody compares where nothing waits.
			running.Hook, v.observation.Change = nil, ""
			r.observeChange(v)
			if v.observation.Change != plan.ChangeNone {
				t.Errorf("without a hook: got %q", v.observation.Change)
			}
		})
	}
}

// TestHookMessage: what Ready adds while an action waits for a hook.
func TestHookMessage(t *testing.T) {
	waits := func(state api.HookState, why string, change plan.Change) *view {
		return viewOf([]string{api.StatusPendingUpgrade, dep}, func(v *view) {
			v.observation.Change = change
			v.observation.Running = &plan.Running{Step: plan.StepUpgrade, Hook: &plan.Hook{Name: "Job apps/web", State: state, Why: why}}
		})
	}
	const how = ` waits until the hook ends. To end the hook now, also if it is at work, set the annotation chartwright.dev/abort to "2"`
	for _, test := range []struct {
		v    *view
		want string
	}{
		{viewOf([]string{dep}), ""},
		{waits("", "", ""), ""},
		{waits(api.HookStarting, "", ""), ". It waits for hook Job apps/web"},
		{waits(api.HookStarting, "Pending", ""), ". It waits for hook Job apps/web: Pending"},
		{waits(api.HookRunning, "", ""), ". It waits for hook Job apps/web, which runs"},
		{waits(api.HookRunning, "", plan.ChangeScale), ". It waits for hook Job apps/web, which runs"},
		{waits(api.HookRunning, "", plan.ChangeEdit), ". It waits for hook Job apps/web, which runs. The edit of the spec" + how},
		{waits(api.HookStuck, "ImagePullBackOff", ""), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookStuck, "ImagePullBackOff", plan.ChangeEdit), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookCrashing, "exit code 1", ""), ". Hook Job apps/web fails again and again: exit code 1"},
	} {
		if got := hookMessage(test.v); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}
