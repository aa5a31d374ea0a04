// Package attack attacks a running operator from outside, as a tenant would.
//
// Each operator runs as a ServiceAccount with the role that "chartwright rbac"
// prints, and within the memory limit of config/manager. The attackers are
// users of a real API server: one has the role edit in their namespace and can
// write custom resources there, another can only write custom resources. During
// an attack, a tenant of another namespace installs one custom resource after
// another. The attack is repelled if these installs succeed while the attack
// continues, the operator is still the same process, and nothing was changed or
// disclosed without permission.
//
// No test measures how long an install takes. Where the attacker's custom
// resources occupy the operator, the tests check the order: several installs of
// the other tenant must be complete before the operator has processed all of the
// attacker's earlier custom resources. Other tests count requests. All waits have
// the deadline of the harness. Therefore, the package can run at the same time
// as other tests and on a slow machine.
//
// A test for a finding must fail with an operator from before the fix, given by
// $CHARTWRIGHT_BINARY.
//
// The package always starts its own cluster, because the attacks store hundreds of
// megabytes in it. Its tests run one after another, so that they need the memory
// of one operator:
//
//	CHARTWRIGHT_BINARY=$PWD/bin/chartwright go test ./test/attack -v
package attack
