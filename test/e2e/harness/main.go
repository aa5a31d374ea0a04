package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
)

// shared is what the tests of a package have in common.
var shared struct {
	*cluster
	// operator is the program under test.
	operator string
}

// parallel is how many tests run at once. Most of a test's time is spent on
// waiting, so that it is more than there are processors.
const parallel = 6

// Main runs the tests of a package on a cluster and returns their exit code.
func Main(m *testing.M) (code int) {
	flag.Parse()
	if !given("test.parallel") {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	scratch, err := os.MkdirTemp("", "chartwright-e2e-")
	if err != nil {
		return fail(err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	if shared.operator, err = operatorBinary(ctx, scratch); err != nil {
		return fail(err)
	}
	if shared.cluster, err = openCluster(ctx, scratch); err != nil {
		return fail(err)
	}
	defer func() {
		if err := shared.close(); err != nil {
			code = fail(err)
		}
	}()
	if err := shared.install(ctx); err != nil {
		return fail(err)
	}

	// An interrupt must not leave a cluster behind.
	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	select {
	case code := <-done:
		return code
	case <-ctx.Done():
		return fail(context.Cause(ctx))
	}
}

func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "e2e:", err)
	return 1
}
