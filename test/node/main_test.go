package node

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// folder is the folder of the cluster, and repository that of the project.
var folder, repository string

// reader and resources read custom resources of the cluster.
var (
	reader    dynamic.Interface
	resources meta.RESTMapper
)

func TestMain(m *testing.M) {
	flag.Parse()
	folder = os.Getenv("CHARTWRIGHT_NODE")
	if folder == "" {
		if err := flag.Set("test.run", "^TestNode_IsMissing$"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestNode_IsMissing reports that no other test runs without a real node.
func TestNode_IsMissing(t *testing.T) {
	if folder == "" {
		t.Skip("part of make check-long (test-node)")
	}
}

// prepare deploys the operator, unless it already runs.
func prepare() error {
	var err error
	if repository, err = filepath.Abs("../.."); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, "kubeconfig"))
	if err != nil {
		return fmt.Errorf("$CHARTWRIGHT_NODE: want the folder of a cluster with a real node: run `make node-up`: %w", err)
	}
	if reader, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	resources = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	ctx, cancel := context.WithTimeout(context.Background(), operatorTimeout)
	defer cancel()
	return deployOperator(ctx)
}

// program returns the path of a program that the Makefile builds.
func program(path ...string) string {
	return filepath.Join(append([]string{repository, "bin"}, path...)...)
}
