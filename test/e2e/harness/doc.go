// Package harness runs the operator's program against a real Kubernetes and
// observes it only through the API.
//
// A package of tests shares one cluster. Main boots and stops it, or uses the
// cluster in the folder that $CHARTWRIGHT_CLUSTER names. Main installs the
// kinds and roles of config/, and builds the operator unless
// $CHARTWRIGHT_BINARY names one. Your own cluster must write an audit log to
// its folder, and must not run an operator that watches the kinds of config/ in
// all namespaces:
//
//	bin/cluster up --dir .cluster --audit-log .cluster/audit.log
//	cd test && CHARTWRIGHT_CLUSTER=$PWD/../.cluster go test ./e2e/...
//
// Everything that a run starts ends with the run, even if a test panics.
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
//
// Each test has an Env: its own namespace, which enforces the restricted Pod
// Security level; admin clients, kubectl and helm; and operators that watch
// only this namespace, so that tests can run in parallel:
//
//	env := harness.New(t)
//	env.NewOperator(harness.Options{}).Start()
//	web := harness.MakePodSet("web").Replicas(3).Obj()
//	env.Create(web)
//	env.WaitReady(web)
//
// An operator never runs with admin permissions. It uses the ServiceAccount of
// config/rbac or, with Options.Account, a ServiceAccount of the test that has
// the permissions for its kinds. Env.Audit returns the requests of such an
// account from the audit log.
//
// The harness never sleeps for a fixed time: every wait has a condition and a
// deadline. When the deadline passes, the test fails with the last error of the
// condition.
package harness
