// Command kube is etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubectl in one file, chosen by the name that it is
// called by, in the manner of busybox.
//
// Each program is upstream's own, unchanged. One binary is built instead of
// five because the five share nearly all of their code: linking it once makes
// the build several times shorter and the result several times smaller.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs says which upstream program each name stands for. A program is
// made only when it is called, since making one registers flags and feature
// gates for the whole process.
var programs = map[string]func(args []string) int{
	"etcd":                    etcd,
	"kube-apiserver":          kubeAPIServer,
	"kube-controller-manager": kubeControllerManager,
	"kube-scheduler":          kubeScheduler,
	"kubectl":                 kubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "this program is called as one of %s (by a symbolic link), not as %q\n",
			strings.Join(names(), ", "), name)
		os.Exit(2)
	}
	os.Exit(program(os.Args))
}

// names lists the programs in a stable order.
func names() []string {
	return slices.Sorted(maps.Keys(programs))
}
