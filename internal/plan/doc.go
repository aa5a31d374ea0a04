// Package plan tells what to do about a custom resource: from an Observation
// of it and its release to one Decision, a state with the next step.
//
// It is pure: plain data in, plain data out, no client, and the time is part
// of the observation. The checks stand in one ordered chain (see chain); the
// first that applies decides. Whoever calls it carries out the step, observes
// again and asks again, until the step is Wait.
package plan
