package main

import (
	"context"
	"fmt"
	"time"
)

// pause is the time between two checks.
const pause = 50 * time.Millisecond

// await calls check repeatedly until it returns nil. The error contains the
// last error of check.
func await(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	return awaitEvery(ctx, pause, limit, check)
}

// awaitEvery is await with another interval.
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
		// Ignore the error of a request that the deadline canceled.
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
