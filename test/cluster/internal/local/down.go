package local

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// grace is the time for a component to exit before it is killed. Killing
// it loses nothing.
const grace = 5 * time.Second

// Down stops the cluster in any state, and removes everything except its logs.
// A folder without a cluster is not an error.
func Down(ctx context.Context, dir string, progress func(format string, args ...any)) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	f := folder(dir)
	if _, err := f.readState(); errors.Is(err, errNoCluster) {
		progress("No cluster in %s.", f)
		return nil
	}
	release, err := f.acquire()
	if err != nil {
		return err
	}
	defer release()
	return stop(ctx, f, progress)
}

// stop stops all components in the stored state, in reverse order of their
// start, and removes the state when all have exited.
func stop(ctx context.Context, f folder, progress func(string, ...any)) error {
	s, err := f.readState()
	if errors.Is(err, errNoCluster) {
		return f.clean()
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, part := range slices.Backward(s.Parts) {
		running, err := part.Process.Running()
		if err == nil && running {
			err = process.Stop(ctx, part.Process, grace)
		}
		switch {
		case err != nil:
			failed = append(failed, err)
		case running:
			progress("%-24s stopped", part.Name)
		default:
			progress("%-24s was not running", part.Name)
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if err := removeNode(f, s); err != nil {
		return err
	}
	return f.clean()
}
