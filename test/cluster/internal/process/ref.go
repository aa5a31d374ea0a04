package process

import (
	"errors"
	"fmt"
	"io/fs"
)

// Ref names one process for as long as the machine is up, and longer: it never
// comes to mean another process.
type Ref struct {
	PID int `json:"pid"`
	// Started is opaque. It differs between two processes that had the same
	// id, also across a reboot.
	Started string `json:"started"`
}

// errGone is returned by started for a process that has ended.
var errGone = errors.New("no such process")

// RefTo describes a process that runs now.
func RefTo(pid int) (Ref, error) {
	moment, err := started(pid)
	if err != nil {
		return Ref{}, fmt.Errorf("cannot tell when process %d started: %w", pid, err)
	}
	return Ref{PID: pid, Started: moment}, nil
}

// Running tells whether this very process still runs. A process that ended but
// was not reaped yet does not run, nor does another one with the same id.
func (r Ref) Running() (bool, error) {
	if r.PID <= 1 || r.Started == "" {
		return false, nil
	}
	moment, err := started(r.PID)
	switch {
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot tell whether process %d still runs: %w", r.PID, err)
	}
	return moment == r.Started, nil
}
