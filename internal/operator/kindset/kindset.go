package kindset

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// Source is where a kind is defined. If several sources define a kind, the lowest one
// owns it.
type Source int

// Sources, in order of precedence.
const (
	// WatchesFile is the watches file. Its kinds never change.
	WatchesFile Source = iota
	// Folder is the folder of --charts-dir.
	Folder
	// ChartKind are custom resources of the kind ChartKind.
	ChartKind
)

// Entry is a kind that a source wants served.
type Entry struct {
	Source Source
	// Name distinguishes the kinds of a source. Of two entries of one source for the same
	// kind, the first by name owns it.
	Name string
	Kind catalog.Kind
	// Serial differs between entries, and changes when the kind of an entry changes.
	Serial int64
}

// GroupKind returns the group and kind of the entry.
func (e Entry) GroupKind() schema.GroupKind { return e.Kind.GVK().GroupKind() }

// Set holds the kinds of all sources. Its methods may be called concurrently.
type Set struct {
	mu      sync.Mutex
	entries map[key]Entry
	// claims are the kinds of entries that were not added yet.
	claims    map[key]schema.GroupKind
	serial    int64
	listeners []chan struct{}
}

type key struct {
	source Source
	name   string
}

// New returns a set with the kinds of the watches file. A kind with problems is not served, and
// no other source defines it.
func New(kinds []catalog.Kind) *Set {
	s := &Set{entries: map[key]Entry{}, claims: map[key]schema.GroupKind{}}
	for i, kind := range kinds {
		s.Put(WatchesFile, fmt.Sprintf("%06d", i), kind)
	}
	return s
}

// Put adds or replaces a kind. A kind that equals the previous one changes nothing.
func (s *Set) Put(source Source, name string, kind catalog.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := key{source, name}
	delete(s.claims, at)
	if known, ok := s.entries[at]; ok && equal(known.Kind, kind) {
		return
	}
	s.serial++
	s.entries[at] = Entry{Source: source, Name: name, Kind: kind, Serial: s.serial}
	s.signal()
}

// Claim notes that a source defines a kind that cannot be served yet, until Put or Remove.
// An empty kind is unknown, and may be any kind. A claim does not change an entry.
func (s *Set) Claim(source Source, name string, kind schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := key{source, name}
	if _, added := s.entries[at]; added {
		return
	}
	if known, ok := s.claims[at]; ok && known == kind {
		return
	}
	s.claims[at] = kind
	s.signal()
}

// Claimed reports whether a source may define a kind that cannot be served yet. Such a kind
// was not removed.
func (s *Set) Claimed(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, claimed := range s.claims {
		if claimed == kind || claimed.Kind == "" {
			return true
		}
	}
	return false
}

// Remove removes a kind, or the claim of a kind.
func (s *Set) Remove(source Source, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := key{source, name}
	_, added := s.entries[at]
	_, claimed := s.claims[at]
	if added || claimed {
		delete(s.entries, at)
		delete(s.claims, at)
		s.signal()
	}
}

// Changes returns a new channel that receives a value after changes of the set. Several
// changes may cause one value.
func (s *Set) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := make(chan struct{}, 1)
	s.listeners = append(s.listeners, listener)
	return listener
}

// signal requires the lock.
func (s *Set) signal() {
	for _, listener := range s.listeners {
		select {
		case listener <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// List returns the entries to serve, one per kind, in order of precedence.
func (s *Set) List() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners, _, _ := s.decide()
	return owners
}

// Kinds returns the kinds to serve.
func (s *Set) Kinds() []catalog.Kind {
	list := s.List()
	kinds := make([]catalog.Kind, len(list))
	for i := range list {
		kinds[i] = list[i].Kind
	}
	return kinds
}

// Conflict returns why an entry is not served, empty if it is served or does not exist.
func (s *Set) Conflict(source Source, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, conflicts := s.decide()
	return conflicts[key{source, name}]
}

// Owner returns why a kind of a source would not be served, because a source with
// precedence defines the kind or one of its names. It is empty if no such source does.
func (s *Set) Owner(source Source, kind catalog.Kind) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	trial := &Set{entries: maps.Clone(s.entries)}
	maps.DeleteFunc(trial.entries, func(at key, _ Entry) bool { return at.source >= source })
	at := key{source: source}
	trial.entries[at] = Entry{Source: source, Kind: kind}
	_, _, conflicts := trial.decide()
	return conflicts[at]
}

// Broken returns the entries of the watches file that own their kind, and have problems.
func (s *Set) Broken() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, broken, _ := s.decide()
	return broken
}

// decide returns the entries that own their kind, with and without problems, and why each
// other entry does not own it. It requires the lock.
func (s *Set) decide() (owners, broken []Entry, conflicts map[key]string) {
	ordered := slices.SortedFunc(maps.Values(s.entries), func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Name, b.Name))
	})
	byKind, names := map[schema.GroupKind]Entry{}, watches.Names{}
	conflicts = map[key]string{}
	for _, entry := range ordered {
		at, gk := key{entry.Source, entry.Name}, entry.GroupKind()
		if owner, taken := byKind[gk]; taken {
			conflicts[at] = fmt.Sprintf("%s is already served by %s: expected one chart per kind", gk, owner.origin())
			continue
		}
		// The names of an entry that is not served exclude no other entry. Entries of the
		// watches file are always served.
		more := names
		if entry.Source != WatchesFile {
			more = maps.Clone(names)
		}
		if problems := more.Add(entry.Kind.Watch); len(problems) > 0 && entry.Source != WatchesFile {
			messages := make([]string, len(problems))
			for i, problem := range problems {
				messages[i] = problem.Message
			}
			conflicts[at] = strings.Join(messages, "; ")
			continue
		}
		byKind[gk], names = entry, more
		if len(entry.Kind.Problems) > 0 {
			broken = append(broken, entry)
		} else {
			owners = append(owners, entry)
		}
	}
	return owners, broken, conflicts
}

// origin returns where the kind is defined.
func (e Entry) origin() string {
	if e.Kind.Line > 0 {
		return fmt.Sprintf("%s:%d", e.Kind.File, e.Kind.Line)
	}
	return cmp.Or(e.Kind.File, e.Name)
}

// equal reports whether two kinds have the same entry, chart and overrides. Lines are
// compared, too, because messages contain them.
func equal(a, b catalog.Kind) bool {
	return digest(a) == digest(b) && reflect.DeepEqual(a.Watch, b.Watch) && reflect.DeepEqual(a.Overrides, b.Overrides)
}

func digest(kind catalog.Kind) string {
	if kind.Chart == nil {
		return ""
	}
	return kind.Chart.Digest
}
