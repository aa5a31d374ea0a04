package testenv

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Limit is how long a test waits for a condition before it fails. It only ends tests that
// would wait forever, and exceeds every duration on a busy machine with the race detector.
const Limit = 3 * time.Minute

// pollInterval is the time between two checks of a condition.
const pollInterval = 20 * time.Millisecond

// Until waits until the check returns no error. After the time limit it fails the test with
// the last error.
func Until(t testing.TB, what string, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), pollInterval, Limit, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s: %v: %v", what, err, last)
	}
}

// Receive returns the next value of a channel, or the zero value if the channel is closed.
// After the time limit it fails the test.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(Limit):
		t.Fatalf("%s: nothing received within %s", what, Limit)
		panic("unreachable")
	}
}
