// Package soak tests an operator with random sequences of events that a seed
// determines, and expects that the operator always reaches the correct state.
//
// A World is an operator, its custom resources, a proxy to the API server, and
// a model of the expected state of each resource. In a round, several events
// happen concurrently: users edit, roll back, pause and delete; other clients
// use the helm command, or change objects and records; the operator is killed
// or stopped; requests are refused, lost and delayed. Then the faults stop, and
// the following must be true within limited time:
//
//   - every resource is Ready with its spec, or held at the requested revision,
//     or reports what is wrong,
//   - one revision of each release is deployed, and none is pending,
//   - the objects are those of its manifest, and no others have its labels,
//   - nothing remains of deleted resources.
//
// At no time does a release have two pending revisions of the operator. The operator
// neither changes an object that another user has created in place of one of the release's
// objects, nor deletes a claim whose deletion no user has approved.
//
// TestGraphs has another model: custom resources that depend on each other. It records every
// change of them and of their releases, and expects that none precedes a dependency.
//
// TestChurn creates, changes and deletes thousands of custom resources over all features,
// and expects that the operator's heap is the same afterwards. It needs CHARTWRIGHT_LONG=1.
// CHARTWRIGHT_CHURN_PROFILES is a folder for heap profiles, for the search for a leak.
//
// By default, the tests are a short run with a fixed seed. For longer runs:
//
//	CHARTWRIGHT_SOAK_SEEDS=1,2,3  the seeds, each with its own world
//	CHARTWRIGHT_SOAK_DECKS=4      the number of repetitions of all events
//	CHARTWRIGHT_SOAK_TIME=30m     the time limit
//	CHARTWRIGHT_SOAK_GRAPHS=200   the number of graphs, which are then larger
//
// A failure prints the seed and the preceding events. The same seed produces
// the same events; their timing differs, and so may the custom resources that
// they affect.
package soak
