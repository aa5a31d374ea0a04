// Package soak tests an operator under random combinations of events. A seed determines the
// events and their order, and the operator must always recover.
//
// A world is an operator, the custom resources that it serves, a proxy between the operator
// and the API server, and a model of the expected state of each custom resource. In a round,
// several things happen at once: users edit, roll back, pause and delete; other clients use
// the helm command, or change objects and release records; the operator is killed or
// stopped; requests are rejected, lost and delayed. Then the faults end, and within bounded
// time the following must hold:
//
//   - Every custom resource is Ready with its spec, is held at the requested revision, or
//     reports what is wrong with it.
//   - Each release has one deployed revision and no pending revision.
//   - The objects are those of its manifest, and no other objects carry the operator's
//     labels.
//   - Deleted custom resources have left nothing behind.
//
// At no time does a release have two pending revisions that the operator created.
//
// By default, the test is a short run with a fixed seed. Environment variables change that:
//
//	CHARTWRIGHT_SOAK_SEEDS=1,2,3  the seeds, each with a world of its own
//	CHARTWRIGHT_SOAK_DECKS=4      how often each event happens
//	CHARTWRIGHT_SOAK_TIME=30m     the maximum duration
//
// A failure prints the seed and the events before it. The same seed produces the same events.
// When they reach the operator, and on which custom resource they act, may differ.
package soak
