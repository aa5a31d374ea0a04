// Package harness runs the operator's program against a real Kubernetes and
// observes it from outside: through the API, its endpoints and its log.
//
// A package of tests shares one cluster. Main boots and stops it, or uses the
// cluster in the folder that $CHARTWRIGHT_CLUSTER names. Main installs
// config/default without the Deployment, and builds the operator unless
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
// Security level, admin clients, kubectl and helm. Tests run in parallel. Most
// tests share an operator, because an operator costs more than a test.
// NewInstalled returns a namespace whose PodSets and OvhNginxes a shared operator
// serves:
//
//	env := harness.NewInstalled(t)
//	web := harness.MakePodSet("web").Replicas(3).Obj()
//	env.Create(web)
//	env.WaitReady(web)
//
// NewShipped does the same for the other namespaced kinds of this repository. For
// another chart, declare a kind with Share before Main runs, and use it in any
// number of tests:
//
//	var plainKind = harness.Share("Plain", "plain")
//
//	env := harness.New(t)
//	kind := env.Use(plainKind)
//	web := harness.MakeCR(kind, "web").Set("count", 1).Obj()
//
// A test needs its own operator if it restarts or stops the operator, injects
// faults with a Proxy, or uses its own flags, permissions or watches file. By
// default, such an operator watches only the test's namespace:
//
//	env := harness.New(t)
//	operator := env.NewOperator(harness.Options{}).Start()
//
// An operator never runs with admin permissions. It uses the ServiceAccount of
// config/rbac or a ServiceAccount that has the permissions for its kinds, see
// Options.Account. Env.Audit returns an account's requests from the audit log.
//
// The harness waits for conditions instead of a fixed time, and every wait has a
// deadline. When the deadline passes, the test fails with the last error of the
// condition. Only Consistently checks a condition for a fixed time.
package harness
