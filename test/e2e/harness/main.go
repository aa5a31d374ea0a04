package harness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// shared is the state that the tests of a package share.
var shared struct {
	*cluster
	guard *guard
	// scratch is a folder that the guard deletes.
	scratch string
	// operator is the program under test.
	operator string
	granted  grantedRules
}

// parallel is the number of tests that run in parallel. Tests mostly wait, so
// there are more of them than processors.
const parallel = 12

// Main runs the tests of a package on a cluster and returns their exit code. It
// also fails if the API server denied an operator a request that no test
// expected to be denied. If all tests ran and unused is not empty, Main also
// fails if unused differs from the permissions of operators that no operator
// used.
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
	shared.scratch = scratch
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
	shared.granted.auditFrom = auditSize()
	code = m.Run()
	for _, operator := range []*sharedOperator{ofSharedKinds, ofInstalledKinds, ofShippedKinds} {
		if operator.end() {
			code = max(code, 1)
		}
	}
	if err := shared.granted.check(ctx, unused); err != nil {
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
	fmt.Fprintln(os.Stderr, err)
	return 1
}
