// Package node tests the operator and the embedded charts with containers: on a
// cluster whose only node is real, so that pods run their programs.
//
// `make test-node` starts the cluster, runs the tests and stops the cluster. The
// operator runs in the cluster as config/default and then the Helm chart deploy it.
// Without $CHARTWRIGHT_NODE, the folder of such a cluster, no test runs.
//
// Each test has an env: a namespace that enforces the restricted Pod Security
// level, and helpers around kubectl. Tests run in parallel. A test that restarts
// the node has an exclusive env. It does not run in parallel, so that no test has to
// wait for it:
//
//	func TestX_Survives(t *testing.T) {
//		e := newExclusiveEnv(t)
//		e.apply("apiVersion: ...")
//		e.waitReady("podset/web")
//		e.restartNode()
//		e.waitReady("podset/web")
//	}
//
// Where to start reading: env_test.go, wait_test.go and run_test.go contain the
// helpers; operator_test.go deploys the operator.
package node
