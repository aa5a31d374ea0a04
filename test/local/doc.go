// Command local runs the operator on this machine: `make run` and `make demo`.
//
// Both boot a cluster unless an existing one is given, run the operator as its
// own ServiceAccount, and stop everything that they have started at the end.
// Each is a list of steps. A step has a line of output that describes it, and a
// check of its effect through the API.
//
// Where to start reading: run.go and demo.go contain the two lists; rig.go
// contains the steps that both begin with; step.go runs a list.
package main
