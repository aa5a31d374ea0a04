// Command bench measures how fast an operator is and what it costs: `make
// bench` and `make bench-check`. docs/performance.md says what the numbers mean.
//
// It boots a cluster of its own, starts the operator on it as an account of its
// own, and makes custom resources of a chart with four objects. What happens to
// them is a list of scenarios. A bare client that writes the same objects, the
// floor, goes through some of them in the same run, for the numbers of a machine
// mean little and their ratio to the floor's much. So may another operator that
// reads a watches file.
//
// All is measured from outside: processes by /proc, requests by the API server's
// audit log, custom resources by one watch. Nothing is polled but files, for a
// client that asks again and again would be measured with the rest.
//
// The way to read it: run.go is the list of scenarios, and each of them a file
// or a function; stage.go is what they all begin and end with, subject.go the
// process that is measured, sights.go the watch. procfs.go, audit.go,
// percentile.go, table.go and rails.go are pure and are tested without a
// cluster.
package main
