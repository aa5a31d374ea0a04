package inventory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// RuleSet holds the health rules of watches entries, by the group and kind of the custom
// resources that own the objects. A nil RuleSet is empty.
type RuleSet struct {
	mu      sync.RWMutex
	byOwner map[schema.GroupKind]health.Rules
}

// NewRuleSet returns a set with the rules of some kinds.
func NewRuleSet(byOwner map[schema.GroupKind]health.Rules) *RuleSet {
	return &RuleSet{byOwner: maps.Clone(byOwner)}
}

// of returns the rules for the objects of an owner.
func (r *RuleSet) of(owner schema.GroupKind) health.Rules {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byOwner[owner]
}

// has reports whether there is a rule for objects of a kind.
func (r *RuleSet) has(gk schema.GroupKind) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, rules := range r.byOwner {
		if rules[gk] != nil {
			return true
		}
	}
	return false
}

// empty reports whether there is no rule.
func (r *RuleSet) empty() bool {
	if r == nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byOwner) == 0
}

// set replaces the rules of an owner, and returns the kinds of objects whose rules may
// have changed.
func (r *RuleSet) set(owner schema.GroupKind, rules health.Rules) []schema.GroupKind {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := maps.Clone(r.byOwner[owner])
	if changed == nil {
		changed = health.Rules{}
	}
	maps.Copy(changed, rules)
	if r.byOwner == nil {
		r.byOwner = map[schema.GroupKind]health.Rules{}
	}
	r.byOwner[owner] = rules
	if len(rules) == 0 {
		delete(r.byOwner, owner)
	}
	return slices.Collect(maps.Keys(changed))
}

// SetHealthRules replaces the health rules for the objects of an owner. Running watches of
// the kinds concerned list all objects again, because the caches hold only their health.
// The context ends the wait for these lists.
func (w *Watches) SetHealthRules(ctx context.Context, owner schema.GroupKind, rules health.Rules) {
	config := w.index.HealthConfig
	if config.Rules == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	known := slices.Collect(maps.Values(w.kinds))
	before := make([]bool, len(known))
	for i, watched := range known {
		before[i] = config.hasRule(watched.gvk.GroupKind())
	}
	changed := config.Rules.set(owner, rules)
	for i, watched := range known {
		if gk := watched.gvk.GroupKind(); slices.Contains(changed, gk) && (before[i] || config.hasRule(gk)) {
			go w.relist(ctx, watched, nil, 0)
		}
	}
}

// relist replaces the informers of a watch in some caches, nil for all, and then removes the
// objects that were deleted in between. It repeats what fails; attempts is the number of earlier
// attempts.
func (w *Watches) relist(ctx context.Context, watched *watch, in []namespaceCache, attempts int) {
	lists, failed, failure := w.replaceInformers(ctx, watched, in)
	for _, list := range lists {
		select {
		case <-list.synced.Done():
			w.index.forgetUnlisted(list.before, list.seen.take())
		case <-ctx.Done():
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	started := watched.attempts == 0
	w.mu.Unlock()
	if failure != nil || started {
		w.setFailure(watched, startFailure, failure)
	}
	if failure != nil {
		w.after(min(retryAtLeast<<min(attempts, 16), retryAtMost), func() {
			if w.isWanted(watched) {
				w.relist(ctx, watched, failed, attempts+1)
			}
		})
	}
}

// replacedList is the first list of an informer that replaces another.
type replacedList struct {
	synced toolscache.DoneChecker
	before []*apply.State
	seen   *listedKeys
}

func (w *Watches) replaceInformers(ctx context.Context, watched *watch, in []namespaceCache) (lists []replacedList, failed []namespaceCache, failure error) {
	watched.starting.Lock()
	defer watched.starting.Unlock()
	w.mu.Lock()
	gvk := watched.gvk
	if in == nil {
		in = slices.Collect(maps.Keys(watched.synced))
	}
	w.mu.Unlock()
	for _, at := range in {
		list := replacedList{before: w.index.liveIn(gvk.GroupKind(), at.namespace), seen: &listedKeys{keys: map[apply.Key]bool{}}}
		removeInformers(ctx, at, gvk)
		if !w.index.HealthConfig.watchedWhole(gvk.GroupKind()) {
			w.index.clearHealth(list.before)
		}
		var err error
		list.synced, err = StartInformer(ctx, at.cache, w.index.HealthConfig.watchedType(gvk), list.seen.handler(w.index.handler()))
		w.mu.Lock()
		if err == nil {
			watched.synced[at] = list.synced
			lists = append(lists, list)
		} else {
			// A new owner of the watch starts it here, too.
			delete(watched.synced, at)
			failure, failed = err, append(failed, at)
		}
		w.mu.Unlock()
	}
	return lists, failed, failure
}

// removeInformers removes the informers of a kind from a cache.
func removeInformers(ctx context.Context, at namespaceCache, gvk schema.GroupVersionKind) {
	for _, object := range possibleTypes(gvk) {
		// An informer that cannot be removed has no effect.
		_ = at.cache.RemoveInformer(ctx, object)
	}
}

// listedKeys are the objects that an informer has listed.
type listedKeys struct {
	mu   sync.Mutex
	keys map[apply.Key]bool
}

// handler notes listed objects, and passes events on.
func (l *listedKeys) handler(next toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if cached, ok := object.(cachedObject); ok && initial {
				l.mu.Lock()
				if l.keys != nil {
					l.keys[cached.state.Key] = true
				}
				l.mu.Unlock()
			}
			next.OnAdd(object, initial)
		},
		UpdateFunc: next.OnUpdate,
		DeleteFunc: next.OnDelete,
	}
}

// take returns the objects that were listed, and stops to note more.
func (l *listedKeys) take() map[apply.Key]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.keys
	l.keys = nil
	return keys
}

// liveIn returns the objects of a kind in a namespace; "" means all namespaces.
func (x *Index) liveIn(gk schema.GroupKind, namespace string) []*apply.State {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var live []*apply.State
	for key, o := range x.objects {
		if key.GroupKind() == gk && (namespace == "" || key.Namespace == namespace) && o.live != nil {
			live = append(live, o.live)
		}
	}
	return live
}

// clearHealth drops the health of objects whose kind no longer has a health.
func (x *Index) clearHealth(of []*apply.State) {
	x.mu.Lock()
	for _, state := range of {
		if o := x.objects[state.Key]; o != nil {
			o.health = nil
		}
	}
	x.mu.Unlock()
	for _, state := range of {
		x.onChange(state.Owner)
	}
}

// forgetUnlisted removes objects that a later list did not contain, unless they have
// changed since.
func (x *Index) forgetUnlisted(before []*apply.State, listed map[apply.Key]bool) {
	for _, state := range before {
		if current, exists := x.Get(state.Key); exists && !listed[state.Key] && current.ResourceVersion == state.ResourceVersion {
			x.observeDeletion(state, true)
		}
	}
}
