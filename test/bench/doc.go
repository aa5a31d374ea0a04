// Command bench measures how fast an operator is and what it costs: `make
// bench` and `make bench-check`. docs/dev/performance.md explains the numbers.
//
// It boots its own cluster, starts the operator with its own account, creates
// custom resources of a chart with four objects, and runs a list of scenarios
// with them. The same run measures a benchmark floor, a bare client that only
// writes the same objects, because ratios to the floor depend less on the
// machine than absolute numbers. Instead of this repository's operator, it can
// measure another one that reads a watches file.
//
// All measurements are made from outside: of processes by /proc, of requests by
// the audit log of the API server, and of custom resources by one watch. Only
// files are polled, because polling the API server would be part of the
// measurement.
//
// Where to start reading: run.go has the list of scenarios, and each scenario
// is a file or a function. stage.go has the code that all scenarios share,
// subject.go runs the measured process, observations.go has the watch.
// procfs.go, audit.go, percentile.go, table.go and guardrails.go are pure
// functions with tests that need no cluster.
package main
