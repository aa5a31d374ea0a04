package watches

// DefaultMaxConcurrent is how many custom resources of a kind are upgraded to a
// new chart at a time.
const DefaultMaxConcurrent = 10

// Rollout says how custom resources are upgraded when their kind's chart is
// another than the one that they run.
type Rollout struct {
	// MaxConcurrent is how many may be under way, or not ready yet, at a time;
	// nil means DefaultMaxConcurrent.
	MaxConcurrent *int `json:"maxConcurrent,omitempty"`
	// AllowDowngrade lets a release go to a chart of a lower version than its
	// own; nil means true.
	AllowDowngrade *bool `json:"allowDowngrade,omitempty"`
	// Paused keeps those that wait waiting.
	Paused bool `json:"paused,omitempty"`
}

// Most returns MaxConcurrent or its default.
func (r Rollout) Most() int {
	if r.MaxConcurrent == nil {
		return DefaultMaxConcurrent
	}
	return *r.MaxConcurrent
}

// Downgrades returns AllowDowngrade or its default.
func (r Rollout) Downgrades() bool { return r.AllowDowngrade == nil || *r.AllowDowngrade }

// checkRollout reports what is no number to go by.
func (p *parser) checkRollout(w *Watch, lines map[string]int) {
	if most := w.Rollout.Most(); most < 1 {
		p.problemf(lines["rollout"], "rollout.maxConcurrent is %d: expected at least 1; paused: true keeps all waiting", most)
	}
}
