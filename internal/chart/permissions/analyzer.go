package permissions

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/landing"
)

// Store keeps results of analyses between processes.
type Store = landing.Store

// Analyzer analyzes charts, several at once, and each only once. The zero value is ready
// for use. It is safe for concurrent use.
type Analyzer struct {
	// Store keeps the results. If it is nil, they are kept in memory.
	Store Store
	// Progress, unless it is nil, is called before the analysis of charts, after each chart,
	// and with all charts done at the end, even after an error.
	Progress func(done, total int)

	// known holds the *facts about charts.
	known sync.Map
}

// analyze returns the facts about the charts of the kinds. A nil Analyzer keeps nothing.
func (a *Analyzer) analyze(kinds []catalog.Kind) ([]*facts, error) {
	if a == nil {
		a = &Analyzer{}
	}
	all := make([]*facts, len(kinds))
	err := a.Each(len(kinds), func(i int) (err error) {
		if all[i], err = a.of(kinds[i]); err != nil {
			return fmt.Errorf("%s: %w", kinds[i].Kind, err)
		}
		return nil
	})
	return all, err
}

// Each calls a function for each of several charts, for as many at once as there are
// processors, and reports the progress. The error is the first one. A nil Analyzer reports
// no progress.
func (a *Analyzer) Each(total int, analyze func(i int) error) error {
	report := func(done int) {
		if a != nil && a.Progress != nil {
			a.Progress(done, total)
		}
	}
	report(0)
	defer report(total)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i := range total {
		group.Go(func() error {
			if err := analyze(i); err != nil {
				return err
			}
			report(int(done.Add(1)))
			return nil
		})
	}
	return group.Wait()
}

// of returns the facts about the chart of a kind.
func (a *Analyzer) of(kind catalog.Kind) (*facts, error) {
	key, err := key(kind)
	if err != nil {
		return nil, err
	}
	if known := a.get(key); known != nil {
		return known, nil
	}
	found, err := analyze(kind)
	if err != nil {
		return nil, err
	}
	// Facts from memory and from the store must not differ, for example in the types of
	// numbers.
	data, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	if a.Store != nil {
		a.Store.Put(key, data)
	}
	return a.add(key, data), nil
}

// get returns stored facts, or nil.
func (a *Analyzer) get(key string) *facts {
	loaded, _ := a.known.Load(key)
	if known, ok := loaded.(*facts); ok || a.Store == nil {
		return known
	}
	data, ok := a.Store.Get(key)
	if !ok {
		return nil
	}
	return a.add(key, data)
}

// add keeps facts in memory. It returns nil if the data are invalid.
func (a *Analyzer) add(key string, data []byte) *facts {
	var found facts
	if err := json.Unmarshal(data, &found); err != nil {
		return nil
	}
	a.known.Store(key, &found)
	return &found
}
