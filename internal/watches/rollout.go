package watches

import (
	"strings"

	"k8s.io/utils/ptr"
)

// DefaultMaxConcurrent is how many custom resources of a kind are upgraded to a
// new chart at a time.
const DefaultMaxConcurrent = 10

// DefaultStopAfterNamespaces is the number of namespaces with a failed upgrade
// at which a rollout stops in all namespaces.
const DefaultStopAfterNamespaces = 3

// Rollout says how custom resources are upgraded when their kind's chart is
// another than the one that they run.
type Rollout struct {
	// MaxConcurrent is how many may be under way, or not ready yet, at a time;
	// nil means DefaultMaxConcurrent.
	MaxConcurrent *int `json:"maxConcurrent,omitempty"`
	// StopAfterNamespaces is the number of namespaces with a failed upgrade at
	// which the rollout stops in all namespaces; nil means
	// DefaultStopAfterNamespaces.
	StopAfterNamespaces *int `json:"stopAfterNamespaces,omitempty"`
	// AllowDowngrade lets a release go to a chart of a lower version than its
	// own; nil means true.
	AllowDowngrade *bool `json:"allowDowngrade,omitempty"`
	// Paused keeps those that wait waiting.
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
		p.problemf(w.Lines["rollout"], "rollout.maxConcurrent is %d: expected at least 1; paused: true keeps all waiting", most)
	}
	if after := w.Rollout.StopAfter(); after < 1 {
		p.problemf(w.Lines["rollout"], "rollout.stopAfterNamespaces is %d: expected at least 1, which stops the rollout everywhere at the first failure", after)
	}
}

// Uninstall says what becomes of the objects that hooks have created when a
// custom resource is deleted. Helm leaves them all.
type Uninstall struct {
	// HookObjects is what to do with them; empty means HookObjectsDelete.
	HookObjects HookObjects `json:"hookObjects,omitempty"`
	// HookSecrets is what to do with Secrets among them; empty means
	// HookObjectsKeep, since charts create Secrets by hooks so that they survive.
	HookSecrets HookObjects `json:"hookSecrets,omitempty"`
}

// HookObjects is what becomes of objects that hooks have created.
type HookObjects string

// Ways to treat the objects of hooks.
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

// checkUninstall reports unknown words, and a switch without effect.
func (p *parser) checkUninstall(w *Watch) {
	checkEnum(p, w.Lines["uninstall"], "uninstall.hookObjects", w.Uninstall.HookObjects, HookObjectsDelete, HookObjectsKeep)
	checkEnum(p, w.Lines["uninstall"], "uninstall.hookSecrets", w.Uninstall.HookSecrets, HookObjectsDelete, HookObjectsKeep)
	if w.Uninstall.HookObjects == HookObjectsKeep && w.Uninstall.HookSecrets == HookObjectsDelete {
		p.problemf(w.Lines["uninstall"], "uninstall.hookSecrets is Delete and uninstall.hookObjects is Keep, which keeps Secrets too: remove one of the two keys")
	}
}

// checkFormerManagers reports names under which nobody writes, and the one
// whose fields are never taken over.
func (p *parser) checkFormerManagers(w *Watch) {
	line := w.Lines["formerManagers"]
	for i, name := range w.FormerManagers {
		switch {
		case strings.TrimSpace(name) == "":
			p.problemf(line, "formerManagers[%d] is empty: expected the name of a field manager, as metadata.managedFields has it", i)
		case name == "kube-controller-manager":
			// Among its fields is what an autoscaler has set.
			p.problemf(line, "formerManagers[%d] is %s: what Kubernetes' own controllers write stays theirs", i, name)
		}
	}
}
