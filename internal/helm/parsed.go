package helm

import (
	"strings"
	"sync"
	"time"

	"github.com/chartwright/chartwright/internal/render"
)

// keepParsed is how long parsed templates are kept after they were last used:
// as long as releases are made one after the other. They take some ten times as
// much memory as their text.
const keepParsed = 30 * time.Second

// parsed are the parsed templates of a chart. Which ones there are depends on
// the subcharts that are on, and on their aliases.
type parsed struct {
	mu   sync.Mutex
	sets map[string]*parsedSet
}

type parsedSet struct {
	*render.Set
	expiry *time.Timer
}

// set returns the files, parsed. The files of one chart are known by their
// names.
func (p *parsed) set(files []render.File) (*render.Set, error) {
	var names strings.Builder
	for _, file := range files {
		names.WriteString(file.Name)
		names.WriteByte(0)
	}
	key := names.String()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.sets[key]; known != nil {
		known.expiry.Reset(keepParsed)
		return known.Set, nil
	}
	set, err := render.Parse(files)
	if err != nil {
		return nil, err
	}
	if p.sets == nil {
		p.sets = map[string]*parsedSet{}
	}
	p.sets[key] = &parsedSet{set, time.AfterFunc(keepParsed, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.sets, key)
	})}
	return set, nil
}
