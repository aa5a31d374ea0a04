package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// state is what is remembered of a cluster between two calls.
type state struct {
	// Server is the address of the API server.
	Server string `json:"server"`
	// Nodes is how many nodes were asked for.
	Nodes int `json:"nodes"`
	// Parts are in the order that they were started in.
	Parts []partState `json:"parts"`
	// Ready is set once the start is complete.
	Ready bool `json:"ready"`
}

// partState is what is remembered of one program.
type partState struct {
	Name    string      `json:"name"`
	Process process.Ref `json:"process"`
	Health  string      `json:"health"`
}

// errNoCluster is returned where there is no cluster to speak of.
var errNoCluster = errors.New("no cluster here")

// errDied is what is wrong with a part that no longer runs.
var errDied = errors.New("died")

func (f folder) readState() (*state, error) {
	raw, err := os.ReadFile(f.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has none (start one with `cluster up`)", errNoCluster, f)
	}
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s is damaged: end the programs that logs/ next to it names by hand, then delete it: %w", f.state(), err)
	}
	return &s, nil
}

// writeState replaces the file in one step, so that a crash never leaves half
// of it: it is the only record of what must be stopped.
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
