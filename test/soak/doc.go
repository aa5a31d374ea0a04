// Package soak looks for what nobody has thought of: it does to an operator
// whatever may happen to one, in an order that a seed chooses, and expects that
// it always finds back.
//
// A World is an operator, the custom resources that it serves, a proxy between
// it and the API server, and a model of what each resource should have come to.
// A round does a few things at once: people edit, roll back, pause and delete;
// somebody uses the helm command behind the operator's back, or damages objects
// and records; the operator is killed or stopped; requests are refused, lost
// and delayed. Then the faults stop and all must come to rest, in bounded time:
//
//   - every resource is Ready with its spec, or held at the revision that was
//     asked for, or says what is wrong with it,
//   - one revision of each release is deployed, and none is pending,
//   - the objects are those of its manifest, and no others carry our labels,
//   - and what was deleted has left nothing behind.
//
// At all times, no release has two pending revisions of ours.
//
// The tests are a short run with a fixed seed. These say what else to run:
//
//	CHARTWRIGHT_SOAK_SEEDS=1,2,3  the seeds, each with a world of its own
//	CHARTWRIGHT_SOAK_DECKS=4      how often everything that can happen happens
//	CHARTWRIGHT_SOAK_TIME=30m     when to stop with all the same
//
// A failure prints the seed and what was done before it. The same seed deals
// the same cards again; when exactly they hit the operator differs, and so may
// which resource there is to play them on.
package soak
