// Package plan decides what to do next about one custom resource: Next maps an
// Observation of the custom resource and its release to one Decision, a state
// and the next step.
//
// It is pure: plain data in, plain data out, no client, and the time is part of
// the observation. The checks form one ordered chain (see chain.go), and the
// first that applies decides. The caller carries out the step, observes again
// and calls Next again, until the step is Wait.
//
// Where to start: the variable chain lists every state with its condition, in order
// of precedence.
package plan
