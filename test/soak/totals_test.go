package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// totals count events. The zero value is ready to use.
type totals struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *totals) inc(name string) { t.plus(name, 1) }

func (t *totals) plus(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[name] += n
}

func (t *totals) count(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[name]
}

// sum adds up the counts of names with a prefix.
func (t *totals) sum(prefix string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, count := range t.counts {
		if strings.HasPrefix(name, prefix) {
			n += count
		}
	}
	return n
}

func (t *totals) faults(counts map[harness.Fault]int) {
	for fault, n := range counts {
		t.plus("fault "+string(fault), n)
	}
}

func (t *totals) add(other *totals) {
	other.mu.Lock()
	counts := maps.Clone(other.counts)
	other.mu.Unlock()
	for name, n := range counts {
		t.plus(name, n)
	}
}

func (t *totals) String() string {
	all := t.sum("fault ")
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := []string{fmt.Sprintf("%5d faults in total", all)}
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		lines = append(lines, fmt.Sprintf("%5d %s", t.counts[name], name))
	}
	return strings.Join(lines, "\n")
}
