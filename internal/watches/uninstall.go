package watches

import "slices"

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
func (p *parser) checkUninstall(w *Watch, lines map[string]int) {
	ways := []HookObjects{"", HookObjectsDelete, HookObjectsKeep}
	if !slices.Contains(ways, w.Uninstall.HookObjects) {
		p.problemf(lines["uninstall"], "uninstall.hookObjects is %q: expected one of %v", w.Uninstall.HookObjects, ways[1:])
	}
	if !slices.Contains(ways, w.Uninstall.HookSecrets) {
		p.problemf(lines["uninstall"], "uninstall.hookSecrets is %q: expected one of %v", w.Uninstall.HookSecrets, ways[1:])
	}
	if w.Uninstall.HookObjects == HookObjectsKeep && w.Uninstall.HookSecrets == HookObjectsDelete {
		p.problemf(lines["uninstall"], "uninstall.hookSecrets is Delete and uninstall.hookObjects is Keep, which keeps Secrets too: remove one of the two keys")
	}
}
