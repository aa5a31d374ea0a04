package process

import (
	"errors"
	"fmt"
	"io/fs"
)

// Ref identifies one process, also across reboots: it never refers to another
// process.
type Ref struct {
	PID int `json:"pid"`
	// Started is opaque. It distinguishes processes with the same ID, also
	// across a reboot.
	Started string `json:"started"`
}

// errGone is returned by started for a process that has ended.
var errGone = errors.New("no such process")

// RefTo returns a reference to a running process.
func RefTo(pid int) (Ref, error) {
	moment, err := started(pid)
	if err != nil {
		return Ref{}, fmt.Errorf("cannot find the start time of process %d: %w", pid, err)
	}
	return Ref{PID: pid, Started: moment}, nil
}

// Running reports whether this process is still running. A process that has
// ended but is not reaped, and another process with the same ID, do not count
// as running.
func (r Ref) Running() (bool, error) {
	if r.PID <= 1 || r.Started == "" {
		return false, nil
	}
	moment, err := started(r.PID)
	switch {
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot check whether process %d is running: %w", r.PID, err)
	}
	return moment == r.Started, nil
}
