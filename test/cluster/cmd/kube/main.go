// Command kube contains kube-apiserver, kube-controller-manager and kube-scheduler in
// one binary. The name with which it is called selects the program, as in
// busybox.
//
// Each program is upstream's own, unchanged. The programs share nearly all of
// their code, so one binary is several times smaller and faster to build than
// one for each program.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs maps names to upstream programs. A program is only created when it
// is called, because creating it registers flags and feature gates for the
// whole process.
var programs = map[string]func() int{
	"kube-apiserver":          kubeAPIServer,
	"kube-controller-manager": kubeControllerManager,
	"kube-scheduler":          kubeScheduler,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "call this program as one of %s (through a symbolic link), not as %q\n",
			strings.Join(names(), ", "), name)
		os.Exit(2)
	}
	os.Exit(program())
}

// names returns the sorted names of the programs.
func names() []string {
	return slices.Sorted(maps.Keys(programs))
}
