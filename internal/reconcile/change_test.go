package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/annotations"
	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/decide"
	"github.com/chartwright/chartwright/internal/values"
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
	requests := func(request decide.Request) func(*view) {
		return func(v *view) { v.observation.Request = &request }
	}
	held := func(v *view) { v.observation.Held = &decide.Held{Revision: 1} }
	disabled := func(v *view) { v.asks.Upgrade.DisableHooks, v.asks.Uninstall.DisableHooks = true, true }
	// of is what values are computed from: the spec, and what valuesFrom names.
	of := func(message string) func(*view) {
		return func(v *view) { v.values = map[string]any{"message": message, "replicas": int64(1)} }
	}
	for _, test := range []struct {
		name string
		step decide.Step
		spec map[string]any
		with []func(*view)
		want decide.Change
	}{
		{"nothing", decide.StepUpgrade, before(), nil, decide.ChangeNone},
		{"the spec", decide.StepUpgrade, map[string]any{"message": "two", "replicas": int64(1)}, nil, decide.ChangeEdit},
		{"a field more", decide.StepInstall, map[string]any{"message": "one", "replicas": int64(1), "more": true}, nil, decide.ChangeEdit},
		{"the scale field", decide.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, nil, decide.ChangeScale},
		{"the scale field, by a writer of the resource", decide.StepUpgrade, map[string]any{"message": "one", "replicas": int64(9)}, []func(*view){func(v *view) { customresource.SetEdits(v.cr, customresource.Edits{Scale: true}) }}, decide.ChangeEdit},
		{"the scale field is gone", decide.StepUpgrade, map[string]any{"message": "one"}, nil, decide.ChangeScale},
		{"the scale field and another", decide.StepUpgrade, map[string]any{"message": "two", "replicas": int64(9)}, nil, decide.ChangeEdit},
		{"what valuesFrom names", decide.StepUpgrade, before(), []func(*view){of("two")}, decide.ChangeEdit},
		{"what valuesFrom names, of a held release", decide.StepTest, before(), []func(*view){of("two"), held}, decide.ChangeNone},
		{"what valuesFrom names, during a rollback", decide.StepRollback, before(), []func(*view){of("two")}, decide.ChangeNone},
		{"the spec, during a rollback", decide.StepRollback, map[string]any{"message": "two"}, nil, decide.ChangeEdit},
		{"the spec, during an uninstall", decide.StepUninstall, map[string]any{"message": "two"}, []func(*view){beingDeleted}, decide.ChangeNone},
		{"the spec is invalid", decide.StepUpgrade, map[string]any{"message": "two"}, []func(*view){func(v *view) { v.observation.Invalid = "no" }}, decide.ChangeNone},

		{"it is deleted", decide.StepUpgrade, before(), []func(*view){beingDeleted}, decide.ChangeDeletion},
		{"it is deleted, which is what runs", decide.StepUninstall, before(), []func(*view){beingDeleted}, decide.ChangeNone},
		{"hooks are disabled", decide.StepUpgrade, before(), []func(*view){disabled}, decide.ChangeHooksDisabled},
		{"delete hooks are disabled", decide.StepUninstall, before(), []func(*view){beingDeleted, disabled}, decide.ChangeHooksDisabled},
		{"a rollback is requested", decide.StepUpgrade, before(), []func(*view){requests(decide.Request{Token: "t", Revision: 1})}, decide.ChangeRollback},
		{"a rollback is requested that cannot be met", decide.StepUpgrade, before(), []func(*view){requests(decide.Request{Token: "t"})}, decide.ChangeNone},
		{"the end of a hold is requested where there is none", decide.StepUpgrade, before(), []func(*view){requests(decide.Request{Token: "t", Resume: true})}, decide.ChangeNone},
		{"the end of a hold is requested while it comes about", decide.StepRollback, before(), []func(*view){requests(decide.Request{Token: "t", Resume: true})}, decide.ChangeRollback},

		{"its revision is aborted", decide.StepUpgrade, before(), []func(*view){aborts("2")}, decide.ChangeAbort},
		{"another revision is aborted", decide.StepUpgrade, before(), []func(*view){aborts("1")}, decide.ChangeNone},
		{"an uninstall is aborted, which it is not", decide.StepUpgrade, before(), []func(*view){aborts(api.AbortUninstall)}, decide.ChangeNone},
		{"the uninstall is aborted", decide.StepUninstall, before(), []func(*view){beingDeleted, aborts(api.AbortUninstall)}, decide.ChangeAbort},
		{"the tests are aborted", decide.StepTest, before(), []func(*view){aborts(api.AbortTest)}, decide.ChangeAbort},
		{"an abort comes before an edit", decide.StepUpgrade, map[string]any{"message": "two"}, []func(*view){aborts("2")}, decide.ChangeAbort},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := scaled(".spec.replicas")
			running := &decide.Running{Step: test.step, Inputs: r.inputs(given(api.StatusPendingUpgrade, before()), test.step), Hook: &decide.Hook{}}
			v := given(api.StatusPendingUpgrade, test.spec, test.with...)
			v.observation.Running = running
			r.observeChange(v)
			if v.observation.Change != test.want {
				t.Errorf("got %q, want %q", v.observation.Change, test.want)
			}
			// Nobody compares where nothing waits.
			running.Hook, v.observation.Change = nil, ""
			r.observeChange(v)
			if v.observation.Change != decide.ChangeNone {
				t.Errorf("without a hook: got %q", v.observation.Change)
			}
		})
	}
}

// TestHookMessage: what Ready adds while an action waits for a hook.
func TestHookMessage(t *testing.T) {
	waits := func(state api.HookState, why string, change decide.Change) *view {
		return viewOf([]string{api.StatusPendingUpgrade, dep}, func(v *view) {
			v.observation.Change = change
			v.observation.Running = &decide.Running{Step: decide.StepUpgrade, Hook: &decide.Hook{Name: "Job apps/web", State: state, Why: why}}
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
		{waits(api.HookRunning, "", decide.ChangeScale), ". It waits for hook Job apps/web, which runs"},
		{waits(api.HookRunning, "", decide.ChangeEdit), ". It waits for hook Job apps/web, which runs. The edit of the spec" + how},
		{waits(api.HookStuck, "ImagePullBackOff", ""), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookStuck, "ImagePullBackOff", decide.ChangeEdit), ". Hook Job apps/web cannot start: ImagePullBackOff"},
		{waits(api.HookCrashing, "exit code 1", ""), ". Hook Job apps/web fails again and again: exit code 1"},
	} {
		if got := hookMessage(test.v); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}
