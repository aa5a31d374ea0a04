// Package local runs a real Kubernetes on this machine: etcd, the API server, the
// controller manager and the scheduler are upstream's own programs, and kwok
// simulates the kubelets. Pods are scheduled, become ready, complete and are
// garbage collected as usual, but no image is run.
//
// With Options.Containers, one real node (see package node) and a controller for
// volumes and load balancers (see package cloud) replace kwok, and pods run
// their images. Tests with both kinds of nodes thus have the same control plane.
//
// One folder contains everything about one cluster. All components listen on
// 127.0.0.1 only, except the API server of a real node, which the node must
// reach.
//
// Where to start reading: up.go contains the start; parts.go, etcd.go,
// apiserver.go, controllers.go, kwok.go and realnode.go define the programs and
// their flags; state.go is the stored state of a cluster.
package local
