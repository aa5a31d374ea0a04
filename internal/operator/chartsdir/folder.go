package chartsdir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/watches"
)

const (
	// settleTime is how long the content of a folder must not change before it is read, so
	// that no half-copied folder is served.
	settleTime = 2 * time.Second
	// removalTime is how long a folder must be gone before its kind is removed.
	removalTime = 30 * time.Second
	// loadTime limits how long the first read waits for folders that are being copied.
	loadTime = 10 * time.Second
)

// Folder is the folder of --charts-dir.
type Folder struct {
	dir      string
	defaults catalog.FolderDefaults
	// removal is removalTime, except in tests.
	removal time.Duration
	now     func() time.Time

	// loaded is closed when all folders that existed at start were read.
	loaded    chan struct{}
	setLoaded func()

	// The other fields belong to Open, and later to Start.

	// set is nil before Serve, and onBroken before Report.
	set      *kindset.Set
	onBroken func([]catalog.Broken)
	reported []catalog.Broken
	folders  map[string]*folder
	// rootErr is why the folder itself cannot be read.
	rootErr error
}

// folder is the state of one folder below.
type folder struct {
	path string
	// seen is the newest content, and since is when it was first seen. read reports that
	// the kind was read from this content.
	seen  content
	since time.Time
	read  bool
	// unreadable is why files of the newest content cannot be read.
	unreadable error
	// kind is the last valid kind, if served is true. err is why the newest content is not
	// valid.
	kind   catalog.Kind
	served bool
	err    error
	// gone is when the folder was first missing; zero if it exists.
	gone time.Time
}

// Open reads the folder. The error means that it cannot be read. A folder below that has
// just changed is read later.
func Open(dir string, defaults catalog.FolderDefaults) (*Folder, error) {
	f := newFolder(dir, defaults)
	f.scan(settleTime)
	return f, f.rootErr
}

func newFolder(dir string, defaults catalog.FolderDefaults) *Folder {
	f := &Folder{dir: dir, defaults: defaults, removal: removalTime, now: time.Now, loaded: make(chan struct{}), folders: map[string]*folder{}}
	f.setLoaded = sync.OnceFunc(func() { close(f.loaded) })
	return f
}

// Kinds returns the kinds that were read. It must not be called after Start.
func (f *Folder) Kinds() []catalog.Kind {
	var kinds []catalog.Kind
	for _, name := range slices.Sorted(maps.Keys(f.folders)) {
		if one := f.folders[name]; one.served {
			kinds = append(kinds, one.kind)
		}
	}
	return kinds
}

// Serve puts the kinds that were read, and those that will be read, into a set.
func (f *Folder) Serve(set *kindset.Set) {
	f.set = set
	for name, one := range f.folders {
		if one.served {
			set.Put(kindset.Folder, name, one.kind)
		}
	}
	f.claim()
}

// Report calls a function with the folders that cannot be served, now and after each
// change.
func (f *Folder) Report(onBroken func([]catalog.Broken)) {
	f.onBroken, f.reported = onBroken, f.Broken()
	onBroken(f.reported)
}

// Loaded returns a channel that is closed when all folders that existed at start were
// read, or did not stop changing.
func (f *Folder) Loaded() <-chan struct{} { return f.loaded }

// Start follows the folder until the context ends.
func (f *Folder) Start(ctx context.Context) error {
	defer f.setLoaded()
	changes := newWatcher(f.dir)
	defer changes.close()
	begin := f.now()
	for {
		next := f.scan(0)
		f.report()
		if !f.pending() || f.now().Sub(begin) > loadTime {
			f.setLoaded()
		}
		changes.watch(f.paths())
		if !changes.wait(ctx, next) {
			return nil
		}
	}
}

// NeedLeaderElection returns false: a standby has its own folder.
func (f *Folder) NeedLeaderElection() bool { return false }

// scan reads the folders that have changed and settled. A folder that was not seen before
// has settled if its newest file is older than the given time, unless that is 0. It returns
// when to scan again, 0 if nothing is pending.
func (f *Folder) scan(old time.Duration) (next time.Duration) {
	found, err := catalog.Folders(f.dir)
	if err == nil && len(found) == 0 && f.anyServed() {
		err = fmt.Errorf("the folder %s is empty: the kinds that were read from it are still served", f.dir)
	}
	if f.rootErr = err; err != nil {
		// The volume may be missing. This is no removal.
		return 0
	}
	now := f.now()
	var settled []*folder
	sooner := func(after time.Duration) {
		if after = max(after, time.Millisecond); next == 0 || after < next {
			next = after
		}
	}
	for _, path := range found {
		name := filepath.Base(path)
		one := f.folders[name]
		isNew := one == nil
		if isNew {
			one = &folder{path: path}
			f.folders[name] = one
		}
		f.look(one, now)
		switch age := now.Sub(one.since); {
		case one.read:
		case age >= settleTime, isNew && old > 0 && now.Sub(one.seen.newest) >= old:
			settled = append(settled, one)
		default:
			sooner(settleTime - age)
		}
	}
	f.load(settled)
	for _, one := range settled {
		if !one.read {
			sooner(settleTime)
		}
	}
	for name, one := range f.folders {
		if left := f.expire(name, one, slices.Contains(found, one.path), now); left > 0 {
			sooner(left)
		}
	}
	f.claim()
	return next
}

// claim claims the kinds of folders that exist but cannot be served: they were not removed.
// The kind of a folder that is still being copied is unknown.
func (f *Folder) claim() {
	if f.set == nil {
		return
	}
	for name, one := range f.folders {
		kind := one.kind.GVK().GroupKind()
		switch {
		case one.served:
		case !one.read && one.gone.IsZero():
			f.set.Claim(kindset.Folder, name, kind)
		case one.read && one.err != nil && kind.Kind != "":
			f.set.Claim(kindset.Folder, name, kind)
		default:
			f.set.Remove(kindset.Folder, name)
		}
	}
}

// look finds out whether a folder has changed. It reads files only after a change of their
// sizes or times.
func (f *Folder) look(one *folder, now time.Time) {
	stamp, err := stat(one.path)
	if err == nil && stamp.stamp == one.seen.stamp {
		return
	}
	var newest content
	if err == nil {
		newest, err = read(one.path)
	}
	if one.unreadable = err; err != nil {
		// A file was deleted meanwhile, or cannot be read.
		newest = content{digest: "error: " + err.Error(), newest: now}
	}
	if newest.digest != one.seen.digest {
		one.since, one.read = now, false
	}
	one.seen = newest
}

// load reads kinds, several at once. A folder that changes meanwhile is read again.
func (f *Folder) load(settled []*folder) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, one := range settled {
		if one.unreadable != nil {
			one.read, one.err = true, fmt.Errorf("read the folder: %w", one.unreadable)
			continue
		}
		group.Go(func() error {
			kind, err := catalog.ReadFolder(one.path, f.defaults)
			after, statErr := stat(one.path)
			if statErr == nil && after.stamp != one.seen.stamp {
				one.since = f.now()
				return nil
			}
			one.read, one.err = true, err
			if err == nil {
				one.kind, one.served = kind, true
			} else if !one.served {
				// The report names the kind, as far as it is known.
				one.kind = kind
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, one := range settled {
		if one.read && one.err == nil && f.set != nil {
			f.set.Put(kindset.Folder, filepath.Base(one.path), one.kind)
		}
	}
}

// expire removes the kind of a folder that has been gone for long enough. A folder without
// a chart counts as gone. It returns how long to wait.
func (f *Folder) expire(name string, one *folder, exists bool, now time.Time) (left time.Duration) {
	empty := one.read && errors.Is(one.err, catalog.ErrNoKind)
	if exists && !empty {
		one.gone = time.Time{}
		return 0
	}
	if one.gone.IsZero() {
		one.gone = now
	}
	if !exists {
		// A folder that comes back must settle.
		one.seen, one.since, one.read = content{}, now, false
	}
	if one.served {
		if left = one.gone.Add(f.removal).Sub(now); left > 0 {
			return left
		}
		one.served = false
		if f.set != nil {
			f.set.Remove(kindset.Folder, name)
		}
	}
	if !exists {
		delete(f.folders, name)
		if f.set != nil {
			// The kind may have been claimed.
			f.set.Remove(kindset.Folder, name)
		}
	}
	return 0
}

func (f *Folder) anyServed() bool {
	for _, one := range f.folders {
		if one.served {
			return true
		}
	}
	return false
}

// pending reports whether a folder has not been read yet.
func (f *Folder) pending() bool {
	for _, one := range f.folders {
		if !one.read && one.gone.IsZero() {
			return true
		}
	}
	return false
}

// paths returns all folders whose changes matter.
func (f *Folder) paths() []string {
	paths := []string{f.dir}
	for _, one := range f.folders {
		paths = append(paths, one.path)
		paths = append(paths, one.seen.folders...)
	}
	return paths
}

// Broken returns the folders that cannot be served. It must not be called after Start.
func (f *Folder) Broken() []catalog.Broken {
	var broken []catalog.Broken
	if f.rootErr != nil {
		broken = append(broken, catalog.Broken{Folder: f.dir, Err: f.rootErr})
	}
	for _, name := range slices.Sorted(maps.Keys(f.folders)) {
		one := f.folders[name]
		if err := f.problem(name, one); err != nil {
			broken = append(broken, catalog.Broken{Folder: one.path, Kind: one.kind.GVK().GroupKind(), Err: err})
		}
	}
	return broken
}

// problem returns why the newest content of a folder is not served.
func (f *Folder) problem(name string, one *folder) error {
	switch {
	case errors.Is(one.err, catalog.ErrNoKind):
		return nil
	case one.err != nil && one.served:
		return fmt.Errorf("%w\nthe last valid version, chart %s-%s, is still served", one.err, one.kind.Chart.Name(), one.kind.Chart.Version())
	case one.err != nil:
		return one.err
	case f.set != nil:
		if conflict := f.set.Conflict(kindset.Folder, name); conflict != "" {
			return watches.LineError{File: one.kind.File, Line: one.kind.Line, Message: conflict}
		}
	}
	return nil
}

// report calls onBroken if the folders that cannot be served have changed.
func (f *Folder) report() {
	broken := f.Broken()
	same := slices.EqualFunc(broken, f.reported, func(a, b catalog.Broken) bool {
		return a.Folder == b.Folder && a.Kind == b.Kind && a.Err.Error() == b.Err.Error()
	})
	if f.onBroken == nil || same {
		return
	}
	f.reported = broken
	f.onBroken(broken)
}
