// Package node runs one real Kubernetes node on this machine: containerd, the
// kubelet and kube-proxy, which run the containers of pods.
//
// The node is a process in mount, network, PID and UTS namespaces of its own.
// Its firewall, its mounts and its temporary files belong to these namespaces,
// so the kernel removes them, and ends all processes of the node, when the
// first process ends. Only the network links and the cgroups are outside; Network
// and Cgroup create and remove them.
//
// Where to start reading: machine_linux.go contains the first process of the
// node; network.go contains the addresses; config.go and the folder templates
// contain the configuration of the programs.
package node
