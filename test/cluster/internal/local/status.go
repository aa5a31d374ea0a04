package local

import (
	"context"
	"path/filepath"
)

// Status tells which parts of a cluster do their work.
type Status struct {
	// Server is the address of the API server.
	Server string
	// Kubeconfig is the file to log in with.
	Kubeconfig string
	// Started tells whether the start was completed.
	Started bool
	// Parts are in the order that they were started in.
	Parts []PartStatus
}

// PartStatus tells how one part is.
type PartStatus struct {
	Name string
	PID  int
	// Problem is what is wrong with the part; nil when nothing is.
	Problem error
	// Log is the file with what the part said.
	Log string
}

// Up tells whether nothing is wrong.
func (s *Status) Up() bool {
	for _, part := range s.Parts {
		if part.Problem != nil {
			return false
		}
	}
	return s.Started
}

// Check looks at every part of the cluster in a folder.
func Check(ctx context.Context, dir string) (*Status, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := folder(dir)
	s, err := f.readState()
	if err != nil {
		return nil, err
	}
	status := &Status{Server: s.Server, Kubeconfig: f.kubeconfig(), Started: s.Ready}
	for _, part := range s.Parts {
		status.Parts = append(status.Parts, PartStatus{
			Name:    part.Name,
			PID:     part.Process.PID,
			Problem: f.problem(ctx, part),
			Log:     f.log(part.Name),
		})
	}
	return status, nil
}

// problem tells what is wrong with a part. One that runs but does not answer is
// as useless as one that died.
func (f folder) problem(ctx context.Context, part partState) error {
	running, err := part.Process.Running()
	if err != nil {
		return err
	}
	if !running {
		return errDied
	}
	client, err := f.healthClient()
	if err != nil {
		return err
	}
	return healthy(ctx, client, part.Health)
}
