package landing

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/chartwright/chartwright/internal/chart"
)

// Landing describes the fields that a value becomes. All of them have the same type.
type Landing struct {
	// Type is the Go type of the fields.
	Type reflect.Type
	// Field is one of the fields, such as "Deployment spec.replicas".
	Field string
	// Templated is true if the chart executes texts in the value as templates.
	Templated bool
}

// Landings holds landings by path, see Key.
type Landings map[string]Landing

// Key returns the key of a path in Landings.
func Key(path []string) string { return strings.Join(path, "\x00") }

// Store keeps landings between processes. It is safe for concurrent use.
type Store interface {
	// Get returns the data of a key, and false without data.
	Get(key string) ([]byte, bool)
	// Put stores data.
	Put(key string, data []byte)
}

// Finder finds landings, of each chart only once. The zero value is ready for use, and a
// nil Finder keeps nothing. It is safe for concurrent use.
type Finder struct {
	// Store keeps the landings. If it is nil, they are kept in memory.
	Store Store

	// known holds the Landings of charts.
	known sync.Map
}

// stored are landings in the format of a Store.
type stored map[string]storedLanding

type storedLanding struct {
	field
	Templated bool `json:"templated,omitempty"`
}

// Find returns where the default values of a chart land.
func (f *Finder) Find(c *chart.Chart) (Landings, error) {
	if f == nil {
		f = &Finder{}
	}
	key := "landing " + c.FilesDigest()
	loaded, _ := f.known.Load(key)
	if known, ok := loaded.(Landings); ok {
		return known, nil
	}
	found, ok := f.get(key)
	if !ok {
		var err error
		if found, err = find(c); err != nil {
			return nil, err
		}
		f.put(key, found)
	}
	landings := found.restored()
	f.known.Store(key, landings)
	return landings, nil
}

func (f *Finder) get(key string) (found stored, ok bool) {
	if f.Store == nil {
		return nil, false
	}
	data, ok := f.Store.Get(key)
	return found, ok && json.Unmarshal(data, &found) == nil
}

func (f *Finder) put(key string, found stored) {
	if f.Store == nil {
		return
	}
	if data, err := json.Marshal(found); err == nil {
		f.Store.Put(key, data)
	}
}

// restored returns the landings, with the types of their fields.
func (s stored) restored() Landings {
	all := Landings{}
	for key, l := range s {
		path := make([]any, len(l.Path))
		for i, step := range l.Path {
			path[i] = step
			// JSON has no integers.
			if index, ok := step.(float64); ok {
				path[i] = int(index)
			}
		}
		if of := typeAt(l.Kind, path); of != nil {
			all[key] = Landing{Type: of, Field: l.String(), Templated: l.Templated}
		}
	}
	return all
}
