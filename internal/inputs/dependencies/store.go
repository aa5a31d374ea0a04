package dependencies

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/inputs"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// Key names an object. The namespace is empty for cluster-scoped objects.
type Key struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns the kind, namespace and name.
func (k Key) String() string {
	return strings.TrimSuffix(k.GroupKind.String()+" "+strings.TrimPrefix(k.NamespacedName.String(), "/"), " ")
}

// Ref is one dependency: the object with a name, or all objects that a selector matches.
type Ref struct {
	Kind schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace string
	// Name is empty if Selector selects the objects.
	Name string
	// Selector is a label selector as text. It must be valid.
	Selector string
	// Ready is the rule that decides whether an object is ready. If it is nil, the rule of
	// the user's kind for objects of this kind decides, or else the built-in health.
	Ready *health.Rule
}

// key returns the name of the object, or a Key without a name for a selector.
func (r Ref) key() Key {
	return Key{r.Kind.GroupKind(), types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
}

// User is a custom resource that depends on objects.
type User struct {
	Key
	UID types.UID
	// Released: the custom resource has a release record or a running action, so that it
	// delays the deletion of its dependencies.
	Released bool
	// Deleting is the deletion timestamp, or the zero time.
	Deleting time.Time
	// Bound is how long after Deleting the deletions of the dependencies wait at most.
	Bound time.Duration
}

// Verdict is what a custom resource waits for.
type Verdict struct {
	// Waits is the first dependency that is not ready, nil if all are ready.
	Waits *Unready
	// Cycle is a cycle of dependencies that contains the custom resource, from its smallest
	// Key, or nil.
	Cycle []Key
	// Next is when to check again without a notification, 0 for never.
	Next time.Duration
}

// Unready is a dependency that is not ready.
type Unready struct {
	// Key has no name if the problem concerns all objects that a selector matches.
	Key      Key
	Selector string
	// Message is the reason, in one line.
	Message string
}

// user is the state of a User.
type user struct {
	User
	refs []Ref
	// during is the service of the user's kind at the last Set.
	during *service
	// component has all custom resources that depend on each other in cycles with the user,
	// and cycle is one such cycle. Both are nil outside cycles.
	component sets.Set[Key]
	cycle     []Key
	// reported is the last result of Check, or what the user was notified of since.
	reported verdict
	// resting: Rest was called since the last Check.
	resting bool
}

// verdict is a Verdict with an absolute time.
type verdict struct {
	waits Unready
	cycle []Key
	next  time.Time
}

func (v verdict) equal(other verdict) bool {
	return v.waits == other.waits && v.next.Equal(other.next) && slices.Equal(v.cycle, other.cycle)
}

// Store holds dependencies, and the objects that custom resources depend on. The zero Store
// is not usable; call NewStore. Its methods may be called concurrently.
type Store struct {
	// users has the dependencies of each user. Its lock guards all fields.
	users  *inputs.Tracker[Ref]
	now    func() time.Time
	limits inputs.Limits
	budget *inputs.Budget

	byUID map[types.UID]*user
	byKey map[Key]*user
	// targets are the dependencies of all users, and at finds them by Ref.key.
	targets map[Ref]*target
	at      map[Key][]*target
	// feeds are the objects of the kinds that are not served.
	feeds  map[schema.GroupVersionKind]*Feed
	served map[schema.GroupKind]*service
	holds  map[types.UID]hold
	// blocked are the custom resources whose deletion waits, with the last result of
	// Dependents.
	blocked map[Key]dependents
	// doubtful are custom resources whose result of Dependents may have changed since the
	// last notifications.
	doubtful sets.Set[Key]
}

// NewStore returns an empty Store. It calls changed without holding a lock, for each custom
// resource to reconcile.
func NewStore(changed func(types.UID)) *Store {
	return &Store{
		users: inputs.NewTracker[Ref](changed), now: time.Now,
		limits: inputs.WholeLimits, budget: inputs.NewBudget(inputs.WholeLimits),
		byUID: map[types.UID]*user{}, byKey: map[Key]*user{},
		targets: map[Ref]*target{}, at: map[Key][]*target{},
		feeds: map[schema.GroupVersionKind]*Feed{}, served: map[schema.GroupKind]*service{},
		holds: map[types.UID]hold{}, blocked: map[Key]dependents{}, doubtful: sets.Set[Key]{},
	}
}

// Set replaces the dependencies of a user. The user itself is not notified of the effect.
func (s *Store) Set(given User, refs []Ref) {
	s.users.Update(func() []types.UID {
		var affected []types.UID
		if other := s.byKey[given.Key]; other != nil && other.UID != given.UID {
			// The custom resource was deleted and created again.
			affected = s.forget(other.UID)
		}
		u := s.byUID[given.UID]
		if u == nil {
			u = &user{}
			s.byUID[given.UID], s.byKey[given.Key] = u, u
		}
		before := u.User
		u.User = given
		if serves := s.served[given.GroupKind]; serves != nil {
			s.reconciled(serves, given.UID)
			u.during = serves
			refs = withRules(refs, serves.rules)
		}
		if given != before {
			s.doubt(u.refs)
		}
		if !slices.Equal(u.refs, refs) {
			s.doubt(u.refs)
			u.refs = slices.Clone(refs)
			s.link(given.UID, u.refs)
			s.doubt(u.refs)
			affected = append(affected, s.updateCycles(given.UID)...)
		}
		s.doubtful.Insert(given.Key)
		affected = slices.DeleteFunc(affected, func(uid types.UID) bool { return uid == given.UID })
		return s.notify(affected)
	})
}

// withRules returns references with the rules of the user's kind.
func withRules(refs []Ref, rules health.Rules) []Ref {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Ready = cmp.Or(refs[i].Ready, rules[refs[i].Kind.GroupKind()])
	}
	return refs
}

// Forget removes the dependencies of a custom resource that no longer exists.
func (s *Store) Forget(uid types.UID) {
	s.users.Update(func() []types.UID {
		if f, _ := s.locate(uid); f == nil {
			delete(s.holds, uid)
		}
		for _, serves := range s.served {
			s.reconciled(serves, uid)
		}
		return s.notify(s.forget(uid))
	})
}

// forget removes a user, and returns the users whose cycles may have changed.
func (s *Store) forget(uid types.UID) []types.UID {
	u := s.byUID[uid]
	if u == nil {
		return nil
	}
	s.doubt(u.refs)
	s.doubtful.Insert(u.Key)
	s.link(uid, nil)
	delete(s.byUID, uid)
	delete(s.byKey, u.Key)
	return s.recompute(u.component)
}

// Check returns what a user waits for: nothing before Set. The user is notified when the
// result changes.
func (s *Store) Check(uid types.UID, now time.Time) Verdict {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	return s.report(uid, now)
}

// Begin is Check for a user whose release is about to change. A user that does not wait
// counts as Released from now on, so that no dependency is deleted in between.
func (s *Store) Begin(uid types.UID, now time.Time) (result Verdict) {
	s.users.Update(func() []types.UID {
		if result = s.report(uid, now); result.Waits != nil {
			return nil
		}
		if u := s.byUID[uid]; u != nil && !u.Released {
			u.Released = true
			s.doubt(u.refs)
		}
		return s.notify(nil)
	})
	return result
}

// report computes what a user waits for and stores that the user knows it.
func (s *Store) report(uid types.UID, now time.Time) Verdict {
	u := s.byUID[uid]
	if u == nil {
		return Verdict{}
	}
	u.reported, u.resting = s.check(u, now), false
	result := Verdict{Cycle: slices.Clone(u.reported.cycle)}
	if u.reported.waits != (Unready{}) {
		result.Waits = new(u.reported.waits)
	}
	if !u.reported.next.IsZero() {
		result.Next = max(u.reported.next.Sub(now), time.Millisecond)
	}
	return result
}

// Rest ends the notifications of a user about dependencies that become ready or not ready,
// until its next Check. Its release follows its spec, so that it does not wait.
func (s *Store) Rest(uid types.UID) {
	s.users.Mu.Lock()
	defer s.users.Mu.Unlock()
	if u := s.byUID[uid]; u != nil {
		u.resting = true
	}
}

// check computes what a user waits for.
func (s *Store) check(u *user, now time.Time) verdict {
	v := verdict{cycle: u.cycle}
	for _, ref := range u.refs {
		if v.waits, v.next = s.targets[ref].unreadyFor(s, u.Key, now); v.waits != (Unready{}) {
			return v
		}
	}
	return v
}

// notify returns those of the given users whose result of Check has changed, and the custom
// resources whose result of Dependents has changed.
func (s *Store) notify(affected []types.UID) (changed []types.UID) {
	now := s.now()
	for _, uid := range affected {
		u := s.byUID[uid]
		if u == nil {
			continue
		}
		s.doubtful.Insert(u.Key)
		v := u.reported
		if v.cycle = u.cycle; !u.resting {
			v = s.check(u, now)
		}
		if !v.equal(u.reported) {
			u.reported = v
			changed = append(changed, uid)
		}
	}
	return append(changed, s.unblocked(now)...)
}
