// Package local runs a real Kubernetes on this machine, without containers:
// etcd, the API server, the controller manager and the scheduler are upstream's
// own programs, and kwok plays the kubelets. Pods are scheduled, become ready,
// complete and are collected as they would anywhere; only no image ever runs.
//
// One folder holds everything about one cluster, so two folders are two
// clusters. Everything listens on 127.0.0.1 only.
//
// The way to read it: up.go tells the story of a start; parts.go, etcd.go,
// apiserver.go, controllers.go and kwok.go say which programs run and how;
// state.go is what is remembered between two calls.
package local
