package release_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// historyOf returns records with the given statuses, newest first.
func historyOf(statuses ...string) []release.Record {
	var history []release.Record
	for i, status := range statuses {
		history = append(history, release.Record{Revision: len(statuses) - i, Status: status})
	}
	return history
}

func revisions(of []release.Record) []int {
	found := []int{}
	for _, r := range of {
		found = append(found, r.Revision)
	}
	return found
}

func TestExcess(t *testing.T) {
	const (
		d, s, f = api.StatusDeployed, api.StatusSuperseded, api.StatusFailed
		p, u    = api.StatusPendingUpgrade, api.StatusUninstalled
	)
	for _, test := range []struct {
		name    string
		history []release.Record
		limit   int
		want    []int
	}{
		{"nothing", nil, 2, []int{}},
		{"within the limit", historyOf(d, s), 2, []int{}},
		{"beyond it", historyOf(d, s, s, s), 2, []int{2, 1}},
		{"a limit of one", historyOf(d, s), 1, []int{1}},
		{"the newest failed one is kept", historyOf(f, d, f, f, s), 2, []int{3, 2}},
		{"failed ones do not count against the limit", historyOf(f, d, s, s), 2, []int{1}},
		{"an earlier failed one is kept", historyOf(d, f, s, f), 2, []int{1}},
		{"the deployed one is kept regardless of its age", historyOf(f, s, s, d), 2, []int{}},
		{"two deployed ones are both kept", historyOf(d, d, s), 1, []int{1}},
		{"a pending one is kept", historyOf(p, d, s), 1, []int{1}},
		{"an uninstalled one is kept", historyOf(u, s, s), 1, []int{1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, revisions(release.Excess(test.history, test.limit))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("50 failures remove no successful revision", func(t *testing.T) {
		statuses := append(slices.Repeat([]string{f}, 50), d, s, s)
		drop := release.Excess(historyOf(statuses...), 3)
		if len(drop) != 49 || slices.ContainsFunc(drop, func(r release.Record) bool { return r.Status != f }) {
			t.Errorf("dropped %v", revisions(drop))
		}
	})
}

func TestExcessProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := historyOf(rapid.SliceOfN(rapid.SampledFrom([]string{
			api.StatusDeployed, api.StatusSuperseded, api.StatusFailed, api.StatusPendingUpgrade, api.StatusUninstalling,
		}), 0, 30).Draw(t, "history")...)
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		drop := revisions(release.Excess(history, limit))
		good, failed := 0, 0
		for i, r := range history {
			dropped := slices.Contains(drop, r.Revision)
			if dropped && (i == 0 || r.Status != api.StatusSuperseded && r.Status != api.StatusFailed) {
				t.Fatalf("revision %d is dropped, %s, of %v", r.Revision, r.Status, history)
			}
			if dropped {
				continue
			}
			switch r.Status {
			case api.StatusSuperseded:
				good++
			case api.StatusFailed:
				failed++
			}
		}
		if good > limit || failed > 1 {
			t.Fatalf("%d superseded and %d failed revisions remain of %v, limit %d", good, failed, history, limit)
		}
	})
}
