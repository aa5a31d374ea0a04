package api

// HookState is how far a hook, a Job or a Pod, is. An action waits for each of
// its hooks to end.
type HookState string

// The states of a hook that has not ended. Only HookStuck and HookCrashing are
// states in which a hook does nothing and is not expected to.
const (
	// HookStarting: no container runs, and nothing says that none will.
	HookStarting HookState = "Starting"
	// HookRunning: a container of one of its pods runs.
	HookRunning HookState = "Running"
	// HookStuck: no container runs, and none can be started: the image cannot be
	// pulled, the configuration is wrong, no node fits, or no pod can be made.
	HookStuck HookState = "Stuck"
	// HookCrashing: no container runs, since the last one failed, and the next try
	// waits for its back-off.
	HookCrashing HookState = "Crashing"
)

// Idle reports whether nothing is lost when the hook ends in this state.
func (s HookState) Idle() bool { return s == HookStuck || s == HookCrashing }
