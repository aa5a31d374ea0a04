package operator

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/watches"
)

// kindState is the state of one kind. A kind waits for its CRD, then it is served until it
// is replaced or removed. Replacing a kind has the effect of a restart of the operator for
// this kind only: what has to survive is in the release records.
type kindState struct {
	gk     schema.GroupKind
	kind   catalog.Kind
	source kindset.Source
	serial int64
	// removed: no source defines the kind. Only deletions are carried out.
	removed bool
	// broken is why the entry of the kind cannot be served, empty if it can. Then removed is
	// set, too.
	broken string
	// wake reconciles custom resources. An action that began before the kind was replaced
	// wakes the next controller.
	wake wakeup
	// crdTried is closed after the first attempt to install the CRD.
	crdTried <-chan struct{}

	// served is nil while the kind waits. It stays set until its controller and caches have
	// ended.
	served *servedKind
	// reported: the log contains that the kind waits.
	reported bool
	// done: no custom resource of the removed kind is left.
	done bool
}

// follow starts, replaces and stops kinds, so that those of the set are served.
func (k *KindManager) follow(ctx context.Context) {
	wanted := map[schema.GroupKind]bool{}
	for _, entry := range k.set.List() {
		gk := entry.GroupKind()
		wanted[gk] = true
		state := k.state(gk)
		if state == nil {
			state = k.add(gk)
		} else if state.serial == entry.Serial && !state.removed {
			continue
		}
		known := state.kind
		if known.Kind == "" {
			// The inventory has the rules of the first kinds.
			known = k.first[gk].Kind
		}
		if !reflect.DeepEqual(known.Health, entry.Kind.Health) {
			k.shared.Inventory.SetHealthRules(ctx, gk, entry.Kind.HealthRules)
		}
		state.kind, state.source, state.serial, state.removed, state.done, state.reported = entry.Kind, entry.Source, entry.Serial, false, false, false
		k.restart(state)
	}
	for _, entry := range k.set.Broken() {
		if gk := entry.GroupKind(); k.state(gk) == nil && gk.Kind != "" {
			state := k.add(gk)
			// Other fields may be those with the problem. Without a version, the lookup finds the
			// preferred one.
			state.kind = catalog.Kind{Watch: watches.Watch{Group: gk.Group, Kind: gk.Kind, Selector: entry.Kind.Selector}}
			state.removed, state.broken = true, entry.Kind.Problems.Error()
			k.prepare(state)
		}
	}
	for _, state := range slices.Clone(k.kinds) {
		if !wanted[state.gk] && !state.removed {
			k.logger.Info("kind removed: only deletions of its custom resources are carried out", "kind", state.gk.Kind, "group", state.gk.Group)
			state.removed = true
			k.restart(state)
		}
	}
}

func (k *KindManager) state(gk schema.GroupKind) *kindState {
	if at := slices.IndexFunc(k.kinds, func(s *kindState) bool { return s.gk == gk }); at >= 0 {
		return k.kinds[at]
	}
	return nil
}

func (k *KindManager) add(gk schema.GroupKind) *kindState {
	state := &kindState{gk: gk}
	k.kinds = append(k.kinds, state)
	return state
}

// restart stops a kind, which continues with end, or prepares a kind that is not served.
func (k *KindManager) restart(state *kindState) {
	if state.served != nil {
		// Until the new chart is served, the status of its custom resources is outdated.
		k.dependencies.store.Suspend(state.gk)
		state.served.stop()
		return
	}
	k.prepare(state)
}

// end continues a kind whose controller and caches have ended.
func (k *KindManager) end(ctx context.Context, served *servedKind) {
	state := served.state
	state.served = nil
	if state.removed && served.reconciler != nil {
		served.reconciler.Close()
	}
	if state.done {
		k.forget(ctx, state)
		return
	}
	k.prepare(state)
}

// empty stops a removed kind without custom resources.
func (k *KindManager) empty(served *servedKind) {
	if state := served.state; state.removed && state.served == served {
		state.done = true
		served.stop()
	}
}

// forget drops a kind that is no longer served.
func (k *KindManager) forget(ctx context.Context, state *kindState) {
	k.logger.Info("kind no longer served", "kind", state.gk.Kind, "group", state.gk.Group)
	k.kinds = slices.DeleteFunc(k.kinds, func(s *kindState) bool { return s == state })
	k.readiness.Remove(state.gk)
	k.permissions.Remove(state.gk)
	k.installer.Remove(state.gk)
	k.shared.Inventory.SetHealthRules(ctx, state.gk, nil)
}

// prepare registers a kind that waits for its CRD, with all that reports on it. The kinds
// at start are registered already.
func (k *KindManager) prepare(state *kindState) {
	if state.removed {
		k.dependencies.remove(state.gk, k.kinds)
		delete(k.first, state.gk)
		if state.broken == "" {
			k.readiness.Add(state.kind)
			// Before the permissions, whose report depends on it.
			k.readiness.SetState(state.gk, readiness.Removed, "")
		}
		k.permissions.AddRemoved(state.kind)
		k.installer.Remove(state.gk)
		state.crdTried = closedChannel
		return
	}
	k.dependencies.serve(state.kind)
	if !k.isFirst(state) {
		k.readiness.Add(state.kind)
		k.permissions.Add(state.kind)
	}
	if state.source == kindset.ChartKind {
		// A ChartKind decides about its CRD, which was installed before the kind was added.
		k.installer.Remove(state.gk)
		state.crdTried = closedChannel
		return
	}
	state.crdTried = k.installer.Add(state.kind)
}

// isFirst reports whether a kind was registered when the operator was created, and was
// not replaced since.
func (k *KindManager) isFirst(state *kindState) bool {
	first, known := k.first[state.gk]
	delete(k.first, state.gk)
	return known && first.Serial == state.serial
}

// closedChannel is closed.
var closedChannel = func() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// startServed starts the waiting kinds that the API server serves. It reports whether
// others still wait, and whether a lookup has failed.
func (k *KindManager) startServed(ctx context.Context, lookups *crdwatch.Lookups) (left, failed bool) {
	var waiting []*kindState
	var kinds []catalog.Kind
	for _, state := range k.kinds {
		if state.served == nil {
			waiting, kinds = append(waiting, state), append(kinds, state.kind)
		}
	}
	for i, found := range lookups.Find(ctx, kinds) {
		state := waiting[i]
		if state.removed && state.kind.Version != "" && meta.IsNoMatchError(found.Err) {
			// Custom resources may exist in another version.
			state.kind.Version, state.kind.Plural = "", ""
			found = lookups.Find(ctx, []catalog.Kind{state.kind})[0]
		}
		switch {
		case found.Err == nil:
			k.startKind(ctx, state, found.Mapping)
			continue
		case meta.IsNoMatchError(found.Err) && state.broken != "":
		case meta.IsNoMatchError(found.Err) && state.removed:
			// Without the CRD there are no custom resources.
			k.forget(ctx, state)
			continue
		case meta.IsNoMatchError(found.Err):
			if !state.reported {
				k.logger.Info("waiting for the CRD of a kind", "kind", state.gk.Kind, "group", state.gk.Group, "version", state.kind.Version)
				state.reported = true
			}
			k.readiness.SetState(state.gk, readiness.Waiting, readiness.WaitsForCRD(state.kind))
			k.dependencies.waits(state.kind)
		default:
			// The API server, or an aggregated API server, is unavailable.
			failed = true
			k.logger.Error(found.Err, "failed to look up kind", "kind", state.gk.Kind, "group", state.gk.Group)
			k.readiness.SetState(state.gk, readiness.Failed, found.Err.Error())
		}
		left = true
	}
	return left, failed
}
