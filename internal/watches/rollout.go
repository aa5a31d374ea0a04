package watches

// DefaultMaxConcurrent is how many custom resources of a kind are upgraded to a
// new chart at a time.
const DefaultMaxConcurrent = 10

// DefaultStopAfterNamespaces is the number of namespaces with a failed upgrade
// at which a rollout stops in all namespaces.
const DefaultStopAfterNamespaces = 3

// Rollout says how custom resources are upgraded when their kind's chart is
// another than the one that they run.
type Rollout struct {
	// MaxConcurrent is how many may be under way, or not ready yet, at a time;
	// nil means DefaultMaxConcurrent.
	MaxConcurrent *int `json:"maxConcurrent,omitempty"`
	// StopAfterNamespaces is the number of namespaces with a failed upgrade at
	// which the rollout stops in all namespaces; nil means
	// DefaultStopAfterNamespaces.
	StopAfterNamespaces *int `json:"stopAfterNamespaces,omitempty"`
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

// StopAfter returns StopAfterNamespaces or its default.
func (r Rollout) StopAfter() int {
	if r.StopAfterNamespaces == nil {
		return DefaultStopAfterNamespaces
	}
	return *r.StopAfterNamespaces
}

// Downgrades returns AllowDowngrade or its default.
func (r Rollout) Downgrades() bool { return r.AllowDowngrade == nil || *r.AllowDowngrade }

// checkRollout reports numbers below 1.
func (p *parser) checkRollout(w *Watch, lines map[string]int) {
	if most := w.Rollout.Most(); most < 1 {
		p.problemf(lines["rollout"], "rollout.maxConcurrent is %d: expected at least 1; paused: true keeps all waiting", most)
	}
	if after := w.Rollout.StopAfter(); after < 1 {
		p.problemf(lines["rollout"], "rollout.stopAfterNamespaces is %d: expected at least 1, which stops the rollout everywhere at the first failure", after)
	}
}
