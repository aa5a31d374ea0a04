package reconcile

import (
	"slices"
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	front = apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "front"}
	back  = apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "back"}
)

// fighting records a repair of an object at each offset from noon.
func fighting(m *memory, key apply.Key, at ...time.Duration) (begun []bool) {
	for _, after := range at {
		begun = append(begun, m.repaired("web", helm.Repaired{Key: key, Pointers: []string{"/data/a"}}, noon.Add(after)))
	}
	return begun
}

func TestFight_BeginsAfterFiveRepairsInAMinute(t *testing.T) {
	for _, test := range []struct {
		name string
		at   []time.Duration
		// begins is the number of the repair that begins the fight, 0 for none.
		begins int
	}{
		{"four at once", []time.Duration{0, 0, 0, 0}, 0},
		{"five at once", []time.Duration{0, 0, 0, 0, 0}, 5},
		{"five in just a minute", []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute}, 5},
		{"five in slightly more than a minute", []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute + 1}, 0},
		{"the last five of six in a minute", []time.Duration{0, 55 * time.Second, 60 * time.Second, 65 * time.Second, 70 * time.Second, 75 * time.Second}, 6},
		{"one every 16 seconds", []time.Duration{0, 16 * time.Second, 32 * time.Second, 48 * time.Second, 64 * time.Second, 80 * time.Second, 96 * time.Second}, 0},
		{"a quiet minute between", []time.Duration{0, 0, 0, 0, time.Minute + 1, time.Minute + 1, time.Minute + 1, time.Minute + 1}, 0},
		{"ten at once", []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f memory
			for i, begun := range fighting(&f, front, test.at...) {
				if begun != (i+1 == test.begins) {
					t.Errorf("fight begins with repair %d: %v", i+1, begun)
				}
			}
			_, fought := f.pause("web", front, noon.Add(test.at[len(test.at)-1]))
			if (fought != nil) != (test.begins > 0) || fought != nil && !slices.Equal(fought.Pointers, []string{"/data/a"}) {
				t.Errorf("in a fight: %v", fought)
			}
		})
	}
}

func TestFight_PauseDoublesUpToTenMinutes(t *testing.T) {
	var f memory
	fighting(&f, front, 0, 0, 0, 0, 0)
	at := noon
	for i, want := range []time.Duration{
		12 * time.Second, 24 * time.Second, 48 * time.Second, 96 * time.Second, 192 * time.Second, 384 * time.Second,
		10 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	} {
		for after, left := range map[time.Duration]time.Duration{0: want, time.Second: want - time.Second, want - 1: 1, want: 0, want + time.Hour: 0} {
			wait, fought := f.pause("web", front, at.Add(after))
			if wait != left || fought == nil {
				t.Errorf("%s after repair %d: wait %s, in a fight: %v; want %s", after, i, wait, fought, left)
			}
		}
		at = at.Add(want)
		if f.repaired("web", helm.Repaired{Key: front}, at) {
			t.Errorf("a second fight begins with repair %d", i+1)
		}
	}
	// Other objects and owners are not affected.
	if wait, fought := f.pause("web", back, at); wait != 0 || fought != nil {
		t.Errorf("another object waits for %s", wait)
	}
	if wait, fought := f.pause("other", front, at); wait != 0 || fought != nil {
		t.Errorf("the object of another owner waits for %s", wait)
	}
}

func TestFight_EndsAfterAQuietPeriod(t *testing.T) {
	for _, test := range []struct {
		name string
		// repairs are the times between the repairs that follow the five at noon.
		repairs []time.Duration
		ended   bool
	}{
		{"at once", []time.Duration{0}, false},
		{"after a minute", []time.Duration{time.Minute}, false},
		{"after more than a minute", []time.Duration{time.Minute + 1}, true},
		// The pause is 48 seconds then, and the quiet period twice as long.
		{"slower, after a minute and a half", []time.Duration{12 * time.Second, 24 * time.Second, 96 * time.Second}, false},
		{"slower, after more than that", []time.Duration{12 * time.Second, 24 * time.Second, 96*time.Second + 1}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var f memory
			fighting(&f, front, 0, 0, 0, 0, 0)
			at := noon
			for _, after := range test.repairs {
				at = at.Add(after)
				f.repaired("web", helm.Repaired{Key: front}, at)
			}
			if _, fought := f.pause("web", front, at); (fought == nil) != test.ended {
				t.Errorf("in a fight: %v", fought)
			}
			if !test.ended {
				return
			}
			// The next fight needs five repairs again.
			for i := 2; i <= fightRepairs; i++ {
				if begun := f.repaired("web", helm.Repaired{Key: front}, at); begun != (i == fightRepairs) {
					t.Errorf("next fight begins with repair %d: %v", i, begun)
				}
			}
		})
	}
}

func TestFight_ForgottenWithItsOwner(t *testing.T) {
	var f memory
	f.forget("web")
	fighting(&f, front, 0, 0, 0, 0, 0)
	f.repaired("other", helm.Repaired{Key: front}, noon)
	f.forget("web")
	if wait, fought := f.pause("web", front, noon); wait != 0 || fought != nil {
		t.Errorf("the object waits for %s", wait)
	}
	if len(f.entries) != 1 {
		t.Errorf("%d owners are remembered, want 1", len(f.entries))
	}
}
