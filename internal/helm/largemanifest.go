package helm

import (
	"context"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// largeManifest is the number of lines, keys and items above which manifests are
// parsed one at a time, whatever action they belong to. A YAML parser takes about
// 500 bytes for each item, which is many times the length of the text.
const largeManifest = 20_000

// parsesLarge holds the action that may parse a large manifest.
var parsesLarge = make(chan struct{}, 1)

// turn is the turn of one action to parse large manifests.
type turn struct{ held bool }

// await takes the turn if the texts together are large. An action never waits for
// anything else while it has the turn.
func (t *turn) await(ctx context.Context, texts ...string) error {
	tokens := 0
	for _, text := range texts {
		tokens += boundedyaml.Tokens(text)
	}
	if t.held || tokens <= largeManifest {
		return nil
	}
	select {
	case parsesLarge <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done gives the turn to the next action.
func (t *turn) done() {
	if t.held {
		t.held = false
		<-parsesLarge
	}
}
