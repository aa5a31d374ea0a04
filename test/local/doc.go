// Command local runs the operator on this machine for a person to look at:
// `make run` and `make demo`.
//
// Both boot a cluster unless they are told to use an existing one, start the
// operator as its own ServiceAccount and stop whatever they have started in the
// end. What they do is a list of steps, each with a line that says what is done
// and a check, through the API, that it was done.
//
// The way to read it: run.go and demo.go are the two lists; rig.go holds the
// steps that both begin with; step.go runs a list.
package main
