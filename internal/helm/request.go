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

// Request describes one action: the release, the input, the options, and the receivers
// of its reports. All interfaces must be set; NoOp implements each of them.
type Request struct {
	Target
	Input
	Options
	Notifier Notifier
	Redactor Redactor
	Slot     SlotLender
	// plan, if not nil, receives what the action would do. Nothing is written.
	plan *Plan
}

// Target is the release that an action changes.
type Target struct {
	// Owner is the custom resource.
	Owner     apply.Owner
	Release   string
	Namespace string
	// ServiceAccount is a service account in the namespace of the release. The client
	// impersonates it for every request about objects. If it is empty, the client uses
	// the operator's own account.
	ServiceAccount string
}

// Input is what the templates are rendered from.
type Input struct {
	Chart *chart.Chart
	// Values are the values of the chart. The action may change the map.
	Values map[string]any
	// CurrentValues returns the values for an upgrade at this time. Actions that compare
	// a stored revision with a render call it. If it is nil, they use Values.
	CurrentValues func() (map[string]any, error)
	Digests       release.Digests
	// Integers makes templates get whole numbers as int64, see values.Numbers. NumbersChosen
	// reports that the watches entry says so itself; otherwise a release keeps its numbers if
	// others would change its objects.
	Integers, NumbersChosen bool
	// Overrides are the values that the watches entry sets. Users cannot change them.
	Overrides map[string]any
}

// Options hold the settings of the kind, of the annotations on the custom resource, and
// of the reconciliation that starts the action.
type Options struct {
	// Timeout limits each hook; it must be greater than 0.
	Timeout time.Duration
	// Allow restricts the objects that the chart may contain.
	Allow watches.Allow
	// Ignore lists fields that are written only when an object is created.
	Ignore []watches.DriftIgnore
	// CRDs is the policy for the CRDs in the chart's crds/ directory.
	CRDs watches.CRDPolicy
	// CreateNamespace makes an install create the namespace of the release if it is
	// missing. An uninstall deletes a namespace that was created this way, unless it
	// contains other releases, or objects that stay.
	CreateNamespace bool
	// FormerManagers are additional field managers whose fields Adopt takes over.
	FormerManagers []string
	// Guard and Approval determine which upgrades and rollbacks need an approval. Approve
	// is the digest of the approved plan.
	Guard    watches.Guard
	Approval watches.Approval
	Approve  string
	// Automatic reports that no user has requested the rollback. It waits for no approval,
	// and leaves guarded objects in place.
	Automatic bool
	// Marks are written to the revision that the action creates, or to the newest
	// revision.
	Marks release.Marks
	// NeverReady reports that the objects of the deployed revision, which this action
	// supersedes, never became ready.
	NeverReady bool
	// DisableHooks skips the action's hooks.
	DisableHooks bool
	// Description replaces Helm's description of the revision.
	Description string
	// TakeOwnership takes over objects of another release, or of no release.
	TakeOwnership bool
	// Force deletes and creates objects that cannot be changed otherwise.
	Force bool
	// Verify also applies objects that are unchanged according to the inventory.
	Verify bool
	// OwnedOnly restricts an uninstall to the objects that the inventory holds for the
	// owner. Objects that are only listed in a record are not deleted.
	OwnedOnly bool
	// RefuseHooks fails an uninstall that would run hooks, because the account that must run
	// them is unknown.
	RefuseHooks bool
	// Deleting reports that the custom resource is being deleted. DeleteData then deletes
	// guarded objects, too, whatever Guard says.
	Deleting, DeleteData bool
	// Uninstall is the policy for objects that hooks created.
	Uninstall watches.Uninstall
	// MoveTo is the new namespace of a release that is installed again after the uninstall.
	// Such an uninstall needs an approval before it begins, and does not delete the
	// namespace of the release.
	MoveTo string
	// WaitForDelete waits until the objects of the uninstalled release no longer exist.
	WaitForDelete bool
}

// Notifier receives reports while an action runs.
type Notifier interface {
	// Warn reports a problem that does not fail the action, as the reason and the
	// message of an event.
	Warn(reason, message string)
	// HookStarted is called when the action starts to wait for a hook. It returns a
	// function that is called when the wait has ended. For a failed hook, that function
	// returns the cause as a sentence, or an empty string.
	HookStarted(wait HookWait) (ended func(failed bool) (cause string))
}

// HookWait describes the wait for one hook.
type HookWait struct {
	Hook apply.Key
	UID  types.UID
	// End cancels the wait and with it the action. The error must be ErrInterrupted.
	End context.CancelCauseFunc
}

// Redactor removes secret values from the errors, the logs and the status of an
// action.
type Redactor interface {
	Redact(text string) string
	// RedactParts also removes parts of secret values. It is for errors of parsers,
	// which quote their input.
	RedactParts(text string) string
	// AddStoredValues adds the values of a release record that the action has read.
	AddStoredValues(values map[string]any)
	// AddSecret adds the decoded data of a Secret that a template looked up.
	AddSecret(data map[string]any)
}

// SlotLender lends the slot of an action to other actions while the action only waits.
type SlotLender interface {
	// Release gives up the slot. The function that it returns waits for a slot.
	Release() (reacquire func())
}

// NoOp holds no slot.
type NoOp struct{}

var _ SlotLender = NoOp{}

// Release does nothing.
func (NoOp) Release() func() { return func() {} }
