// Package harness runs the operator, as the program that users run, against a
// real Kubernetes, and looks at what it does through the API alone.
//
// A package of tests has one cluster. Main boots it and stops it again, or
// uses the one whose folder $CHARTWRIGHT_CLUSTER names; installs the kinds and
// the rules of config/; and builds the operator, unless $CHARTWRIGHT_BINARY
// names one. A cluster of one's own must keep an audit log in its folder, and
// run no operator that watches the kinds of config/ in all namespaces:
//
//	bin/cluster up --dir .cluster --audit-log .cluster/audit.log
//	cd test && CHARTWRIGHT_CLUSTER=$PWD/../.cluster go test ./e2e/...
//
// Whatever a run started is ended with it, also where a test panics.
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
//
// Each test has an Env: a namespace of its own that enforces the restricted
// Pod Security level, clients of an admin, kubectl and helm, and operators
// that watch this namespace only, so that tests run side by side:
//
//	env := harness.New(t)
//	env.NewOperator(harness.Options{}).Start()
//	web := harness.MakePodSet("web").Replicas(3).Obj()
//	env.Create(web)
//	env.WaitReady(web)
//
// An operator never runs as an admin. It is the ServiceAccount of config/rbac,
// or with Options.Account one of the test's own with the same rules and what
// the test adds to them. What such an account asked of the API server can be
// read back from the audit log, see Env.Audit.
//
// Nothing here sleeps: every wait has a condition and a deadline, and says
// what it saw last when the deadline passes.
package harness
