package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// shared is what the tests of a package have in common.
var shared struct {
	*cluster
	guard *guard
	// operator is the program under test.
	operator string
	rights   rights
}

// parallel is how many tests run at once. Most of a test's time is spent on
// waiting, so that it is more than there are processors.
const parallel = 6

// Main runs the tests of a package on a cluster and returns their exit code. It
// fails, too, where an operator was refused what no test took away and, when
// all tests ran, where operators have rights that none of them used, other than
// those that are named.
func Main(m *testing.M, unused ...Unused) (code int) {
	flag.Parse()
	if !given("test.parallel") {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	ctx := context.Background()
	scratch, err := os.MkdirTemp("", "chartwright-e2e-")
	if err != nil {
		return fail(err)
	}
	if shared.cluster, err = findCluster(scratch); err != nil {
		return fail(err)
	}
	if shared.guard, err = startGuard(scratch, shared.stopCommand()...); err != nil {
		return fail(err)
	}
	defer func() {
		if err := shared.guard.close(); err != nil {
			code = fail(fmt.Errorf("clean up: %w", err))
		}
	}()
	if shared.operator, err = operatorBinary(ctx, scratch); err != nil {
		return fail(err)
	}
	if err := shared.open(ctx); err != nil {
		return fail(err)
	}
	shared.rights.auditFrom = auditSize()
	code = m.Run()
	if err := shared.rights.check(ctx, unused); err != nil {
		return max(code, fail(err))
	}
	return code
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
