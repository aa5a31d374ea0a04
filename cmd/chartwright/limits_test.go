package main

import (
	"errors"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr/funcr"
)

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		name, environment string
		provider          memlimit.Provider
		want              int64
		says              string
	}{
		{"a container's limit, less some air", "", memlimit.Limit(1000 << 20), 900 << 20, `"bytes"=943718400`},
		{"no limit", "", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, math.MaxInt64, ""},
		{"what a person sets wins", "300MiB", memlimit.Limit(1000 << 20), 1 << 40, `"bytes"=1099511627776`},
		{"a system that does not tell", "", func() (uint64, error) { return 0, errors.New("no cgroups") }, 1 << 40, "no cgroups"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The runtime has read the variable when the process began, so that
			// its value here is of no consequence: only that it is there.
			if test.environment != "" {
				t.Setenv("GOMEMLIMIT", test.environment)
			}
			debug.SetMemoryLimit(1 << 40)
			var said strings.Builder
			limitMemory(test.provider, funcr.New(func(_, args string) { said.WriteString(args) }, funcr.Options{}))
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("the limit is %d, expected %d", got, test.want)
			}
			if test.says == "" && said.Len() > 0 || !strings.Contains(said.String(), test.says) {
				t.Errorf("it says %q, expected %q", said.String(), test.says)
			}
		})
	}
}
