package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// state is the stored state of a cluster.
type state struct {
	// Server is the address of the API server.
	Server string `json:"server"`
	// Nodes is the number of nodes.
	Nodes int `json:"nodes"`
	// Parts are in the order of their start.
	Parts []partState `json:"parts"`
	// Network contains the addresses of a real node.
	Network *node.Network `json:"network,omitempty"`
	// Ready is set when the start is complete.
	Ready bool `json:"ready"`
}

// partState is the stored state of one component.
type partState struct {
	Name    string      `json:"name"`
	Process process.Ref `json:"process"`
	Health  string      `json:"health"`
}

// errNoCluster is returned for a folder without a cluster.
var errNoCluster = errors.New("no cluster here")

// errDied is the problem of a component that is no longer running.
var errDied = errors.New("died")

func (f folder) readState() (*state, error) {
	raw, err := os.ReadFile(f.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s contains no cluster (start one with `cluster up`)", errNoCluster, f)
	}
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s is corrupt: stop the programs named in the folder logs next to it, then delete the file: %w", f.state(), err)
	}
	return &s, nil
}

// writeState replaces the file atomically, because it is the only record of the
// running processes.
func (f folder) writeState(s *state) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	next := f.state() + ".new"
	if err := os.WriteFile(next, append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.state())
}
