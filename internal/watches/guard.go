package watches

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Guard configures which deletions and replacements of resources need an approval.
type Guard struct {
	// Mode is what to do about them; empty means GuardEnforce.
	Mode GuardMode `json:"mode,omitempty"`
	// Kinds are guarded kinds in addition to the built-in ones, as "<apiGroup>/<kind>" or
	// "<kind>" in the core group.
	Kinds []string `json:"kinds,omitempty"`
	// OnDelete is what happens to guarded resources when their custom resource is deleted;
	// empty means OnDeleteKeep or, if Mode only warns or is off, OnDeleteDelete.
	OnDelete OnDelete `json:"onDelete,omitempty"`
}

// OnDelete is what happens to guarded resources when their custom resource is deleted.
type OnDelete string

// Values of OnDelete.
const (
	// OnDeleteKeep: they stay, and no longer belong to the release.
	OnDeleteKeep OnDelete = "Keep"
	// OnDeleteApprove: the uninstall waits for an approval, and then deletes them.
	OnDeleteApprove OnDelete = "Approve"
	// OnDeleteDelete: the uninstall deletes them.
	OnDeleteDelete OnDelete = "Delete"
)

// Deletion returns OnDelete, or its default.
func (g Guard) Deletion() OnDelete {
	if g.Mode == GuardWarn || g.Mode == GuardOff {
		return cmp.Or(g.OnDelete, OnDeleteDelete)
	}
	return cmp.Or(g.OnDelete, OnDeleteKeep)
}

// GuardMode is what to do about an action that deletes or replaces guarded resources.
type GuardMode string

// Values of GuardMode.
const (
	// GuardEnforce: the action waits for an approval.
	GuardEnforce GuardMode = "Enforce"
	// GuardWarn: the action continues, and an event names the resources.
	GuardWarn GuardMode = "Warn"
	// GuardOff: nothing is checked.
	GuardOff GuardMode = "Off"
)

// Approval is which upgrades and rollbacks need an approval. Automatic rollbacks need none.
type Approval string

// Values of Approval.
const (
	// ApprovalNever: none waits, as with GuardWarn.
	ApprovalNever Approval = "Never"
	// ApprovalData: those that delete or replace guarded resources.
	ApprovalData Approval = "Data"
	// ApprovalAlways: all, and each recreation of a resource by force.
	ApprovalAlways Approval = "Always"
)

// GroupKinds returns Kinds.
func (g Guard) GroupKinds() []schema.GroupKind {
	kinds := make([]schema.GroupKind, len(g.Kinds))
	for i, text := range g.Kinds {
		group, kind, found := strings.Cut(text, "/")
		if !found {
			group, kind = "", text
		}
		kinds[i] = schema.GroupKind{Group: group, Kind: kind}
	}
	return kinds
}

// checkGuard reports unknown values, and kinds without a name.
func (p *parser) checkGuard(w *Watch) {
	checkEnum(p, w.Lines["guard"], "guard.mode", w.Guard.Mode, GuardEnforce, GuardWarn, GuardOff)
	checkEnum(p, w.Lines["approval"], "approval", w.Approval, ApprovalNever, ApprovalData, ApprovalAlways)
	checkEnum(p, w.Lines["guard"], "guard.onDelete", w.Guard.OnDelete, OnDeleteKeep, OnDeleteApprove, OnDeleteDelete)
	if w.Guard.OnDelete == OnDeleteApprove && w.Approval == ApprovalNever {
		p.problemf(w.Lines["guard"], "guard.onDelete is Approve, and approval is Never: use Keep or Delete")
	}
	for i, kind := range w.Guard.GroupKinds() {
		if kind.Kind == "" || strings.ContainsAny(kind.Kind, "/. ") {
			p.problemf(w.Lines["guard"], "guard.kinds[%d] is %q: expected <apiGroup>/<kind>, such as example.com/Database, or <kind> in the core group", i, w.Guard.Kinds[i])
		}
	}
}
