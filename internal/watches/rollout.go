package watches

import (
	"strings"

	"k8s.io/utils/ptr"
)

// DefaultMaxConcurrent is how many custom resources of a kind are upgraded to a new chart
// at a time.
const DefaultMaxConcurrent = 10

// DefaultStopAfterNamespaces is the number of namespaces with a failed upgrade that stops a
// rollout in all namespaces.
const DefaultStopAfterNamespaces = 3

// Rollout configures how custom resources are upgraded to a new chart of their kind.
type Rollout struct {
	// MaxConcurrent is how many custom resources may be upgrading or not ready yet at a
	// time; nil means DefaultMaxConcurrent.
	MaxConcurrent *int `json:"maxConcurrent,omitempty"`
	// StopAfterNamespaces is the number of namespaces with a failed upgrade that stops the
	// rollout in all namespaces; nil means DefaultStopAfterNamespaces.
	StopAfterNamespaces *int `json:"stopAfterNamespaces,omitempty"`
	// AllowDowngrade allows upgrades to a chart with a lower version; nil means true.
	AllowDowngrade *bool `json:"allowDowngrade,omitempty"`
	// Paused pauses the rollout: no custom resource in the queue is upgraded.
	Paused bool `json:"paused,omitempty"`
}

// ConcurrencyLimit returns MaxConcurrent or its default.
func (r Rollout) ConcurrencyLimit() int { return ptr.Deref(r.MaxConcurrent, DefaultMaxConcurrent) }

// StopAfter returns StopAfterNamespaces or its default.
func (r Rollout) StopAfter() int { return ptr.Deref(r.StopAfterNamespaces, DefaultStopAfterNamespaces) }

// Downgrades returns AllowDowngrade or its default.
func (r Rollout) Downgrades() bool { return ptr.Deref(r.AllowDowngrade, true) }

// checkRollout reports numbers below 1.
func (p *parser) checkRollout(w *Watch) {
	if most := w.Rollout.ConcurrencyLimit(); most < 1 {
		p.problemf(w.Lines["rollout"], "rollout.maxConcurrent is %d: expected at least 1; to stop all upgrades, set rollout.paused: true", most)
	}
	if after := w.Rollout.StopAfter(); after < 1 {
		p.problemf(w.Lines["rollout"], "rollout.stopAfterNamespaces is %d: expected at least 1, which stops the rollout everywhere at the first failure", after)
	}
}

// Uninstall configures what happens to the objects of hooks when a custom resource is
// deleted. Helm keeps all of them.
type Uninstall struct {
	// HookObjects is what to do with the objects of hooks; empty means HookObjectsDelete.
	HookObjects HookObjects `json:"hookObjects,omitempty"`
	// HookSecrets is what to do with Secrets of hooks; empty means HookObjectsKeep, because
	// charts create Secrets by hooks so that they survive an uninstall.
	HookSecrets HookObjects `json:"hookSecrets,omitempty"`
}

// HookObjects is what an uninstall does with objects of hooks.
type HookObjects string

// Values of HookObjects.
const (
	HookObjectsDelete HookObjects = "Delete"
	HookObjectsKeep   HookObjects = "Keep"
)

// DeletesHookObjects reports whether an uninstall deletes objects of hooks.
func (u Uninstall) DeletesHookObjects() bool { return u.HookObjects != HookObjectsKeep }

// DeletesHookSecrets reports whether an uninstall deletes Secrets of hooks.
func (u Uninstall) DeletesHookSecrets() bool {
	return u.DeletesHookObjects() && u.HookSecrets == HookObjectsDelete
}

// checkUninstall reports unknown values, and a combination without effect.
func (p *parser) checkUninstall(w *Watch) {
	checkEnum(p, w.Lines["uninstall"], "uninstall.hookObjects", w.Uninstall.HookObjects, HookObjectsDelete, HookObjectsKeep)
	checkEnum(p, w.Lines["uninstall"], "uninstall.hookSecrets", w.Uninstall.HookSecrets, HookObjectsDelete, HookObjectsKeep)
	if w.Uninstall.HookObjects == HookObjectsKeep && w.Uninstall.HookSecrets == HookObjectsDelete {
		p.problemf(w.Lines["uninstall"], "uninstall.hookSecrets is Delete and uninstall.hookObjects is Keep, which keeps Secrets too: remove one of the two keys")
	}
}

// checkFormerManagers reports empty names, and kube-controller-manager, whose fields are
// never taken over.
func (p *parser) checkFormerManagers(w *Watch) {
	line := w.Lines["formerManagers"]
	for i, name := range w.FormerManagers {
		switch {
		case strings.TrimSpace(name) == "":
			p.problemf(line, "formerManagers[%d] is empty: expected the name of a field manager from metadata.managedFields", i)
		case name == "kube-controller-manager":
			// Its fields include those that autoscalers set.
			p.problemf(line, "formerManagers[%d] is %s: the fields of Kubernetes' own controllers cannot be taken over", i, name)
		}
	}
}
