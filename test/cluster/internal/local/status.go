package local

import (
	"context"
	"path/filepath"
)

// Status is the state of a cluster's components.
type Status struct {
	// Server is the address of the API server.
	Server string
	// Kubeconfig is the path of the admin's kubeconfig.
	Kubeconfig string
	// Started reports whether the start was completed.
	Started bool
	// Parts are in the order of their start.
	Parts []PartStatus
}

// PartStatus is the state of one component.
type PartStatus struct {
	Name string
	PID  int
	// Problem is the reason why the component is not ready, or nil.
	Problem error
	// Log is the path of the component's log.
	Log string
}

// Up reports whether the start was completed and all components are ready.
func (s *Status) Up() bool {
	for _, part := range s.Parts {
		if part.Problem != nil {
			return false
		}
	}
	return s.Started
}

// Check checks all components of the cluster in a folder.
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

// problem returns why a component is not ready. A process that does not respond
// counts as not ready.
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
