// Package local runs a real Kubernetes on this machine, without containers:
// etcd, the API server, the controller manager and the scheduler are upstream's
// own programs, and kwok simulates the kubelets. Pods are scheduled, become
// ready, complete and are garbage collected as usual, but no image is run.
//
// One folder contains everything about one cluster. All components listen on
// 127.0.0.1 only.
//
// Where to start reading: up.go contains the start; parts.go, etcd.go,
// apiserver.go, controllers.go and kwok.go define the programs and their flags;
// state.go is the stored state of a cluster.
package local
