package helm

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Request is what an action works on, how, and whom it reports to. All of its
// interfaces must be set; NoOp implements each.
type Request struct {
	Target
	Input
	Options
	Notifier Notifier
	Redactor Redactor
	Slot     SlotLender
}

// Target is the release that an action changes.
type Target struct {
	// Owner is the custom resource.
	Owner     apply.Owner
	Release   string
	Namespace string
	// ServiceAccount of the release's namespace is impersonated for every request
	// about objects. Empty means the operator's own account.
	ServiceAccount string
}

// Input is what the release is rendered from.
type Input struct {
	Chart *chart.Chart
	// Values are given to the chart; the action may change them.
	Values map[string]any
	// CurrentValues returns the values that an upgrade would give to the chart now.
	// Actions that render nothing call it to compare a stored revision with a
	// render. Nil returns Values.
	CurrentValues func() (map[string]any, error)
	Digests       release.Digests
	// Overrides are the values that the watches entry sets. Nothing else may change
	// them.
	Overrides map[string]any
}

// Options are the settings of the kind, of the custom resource's annotations and
// of the reconciliation that starts the action.
type Options struct {
	// Timeout bounds each hook; it must be more than 0.
	Timeout time.Duration
	// Allow bounds the objects that the chart may have.
	Allow watches.Allow
	// Ignore names fields that are written only when an object is created.
	Ignore []watches.DriftIgnore
	// CRDs is the policy for the chart's crds/.
	CRDs watches.CRDPolicy
	// CreateNamespace creates the namespace of an install if it is missing. An
	// uninstall deletes a namespace created so if it holds no other release.
	CreateNamespace bool
	// FormerManagers are field managers, beside Helm's own, whose fields Adopt
	// takes over.
	FormerManagers []string
	// Marks are written to the revision that the action creates, or to the newest.
	Marks release.Marks
	// NeverReady reports that the objects of the deployed revision, which the
	// action supersedes, never became ready.
	NeverReady bool
	// DisableHooks skips the action's hooks.
	DisableHooks bool
	// Description replaces Helm's own on the revision.
	Description string
	// TakeOwnership takes over objects that belong to another release, or to none.
	TakeOwnership bool
	// Force recreates objects that cannot be changed otherwise.
	Force bool
	// Verify applies objects that seem unchanged, too.
	Verify bool
	// OwnedOnly restricts an uninstall to the objects that the inventory holds for
	// the owner; objects that only a record names stay.
	OwnedOnly bool
	// Deleting reports that the custom resource is being deleted.
	Deleting bool
	// Uninstall is the policy for objects that hooks have created.
	Uninstall watches.Uninstall
	// WaitForDelete waits until the objects of an uninstalled release are gone.
	WaitForDelete bool
}

// Notifier receives reports of an action while it runs.
type Notifier interface {
	// Warn reports, as an event's reason and message, a problem that does not fail
	// the action.
	Warn(reason, message string)
	// HookStarted is called when the action begins to wait for a hook. ended is
	// called when the wait is over; for a failed hook it returns the cause, if known,
	// in a sentence.
	HookStarted(wait HookWait) (ended func(failed bool) (cause string))
}

// HookWait is the wait of an action for one of its hooks.
type HookWait struct {
	Hook apply.Key
	UID  types.UID
	// End ends the wait, and with it the action. Its error must be ErrInterrupted.
	End context.CancelCauseFunc
}

// Redactor removes secret values from the errors, the logs and the status of an
// action.
type Redactor interface {
	Redact(text string) string
	// RedactParts removes parts of secret values, too. It is for errors of parsers,
	// which quote their input.
	RedactParts(text string) string
	// AddStoredValues adds the values of a release record that the action has read.
	AddStoredValues(values map[string]any)
	// AddSecret adds the decoded data of a Secret that a template has looked up.
	AddSecret(data map[string]any)
}

// SlotLender gives the slot of an action to other actions while it only waits.
type SlotLender interface {
	// Release gives the slot away; reacquire waits for a slot.
	Release() (reacquire func())
}

// NoOp reports nothing, redacts nothing and holds no slot.
type NoOp struct{}

var (
	_ Notifier   = NoOp{}
	_ Redactor   = NoOp{}
	_ SlotLender = NoOp{}
)

// Warn does nothing.
func (NoOp) Warn(string, string) {}

// HookStarted does nothing.
func (NoOp) HookStarted(HookWait) func(bool) string { return func(bool) string { return "" } }

// Redact returns the text.
func (NoOp) Redact(text string) string { return text }

// RedactParts returns the text.
func (NoOp) RedactParts(text string) string { return text }

// AddStoredValues does nothing.
func (NoOp) AddStoredValues(map[string]any) {}

// AddSecret does nothing.
func (NoOp) AddSecret(map[string]any) {}

// Release does nothing.
func (NoOp) Release() func() { return func() {} }
