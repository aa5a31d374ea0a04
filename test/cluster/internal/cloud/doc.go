// Package cloud contains a small controller that does what a cloud provider does
// for a cluster: it creates volumes for claims, and sets the addresses of
// Services of type LoadBalancer.
//
// It is for clusters with one real node on this machine: a volume is a folder of
// this machine, and kube-proxy on the node serves all addresses.
package cloud
