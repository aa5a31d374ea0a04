package main

import (
	"context"
	"fmt"
	"time"
)

// pause is the time from one question to the next.
const pause = 50 * time.Millisecond

// await asks again and again until the check is content. The error is what the
// check said last.
func await(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	return awaitEvery(ctx, pause, limit, check)
}

// awaitEvery is await for what should not be asked that often.
func awaitEvery(ctx context.Context, pause, limit time.Duration, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	again := time.NewTicker(pause)
	defer again.Stop()
	var last error
	for {
		err := check(limited)
		if err == nil {
			return nil
		}
		// A request that the deadline cut short tells nothing.
		if limited.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limited.Done():
			return fmt.Errorf("not within %s: %w", limit, last)
		case <-again.C:
		}
	}
}
