package helm

import (
	"fmt"
	"slices"
	"sync"
)

// tailLength is the number of lines of Helm's log that an error carries.
const tailLength = 8

// tail keeps the end of what one action logs.
type tail struct {
	mu   sync.Mutex
	last []string
}

func (t *tail) printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, fmt.Sprintf(format, args...))
	if len(t.last) > tailLength {
		t.last = slices.Delete(t.last, 0, len(t.last)-tailLength)
	}
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last)
}
