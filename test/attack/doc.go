// Package attack attacks a running operator as a tenant would, from outside.
//
// Each operator runs as a ServiceAccount with the role that "chartwright rbac"
// prints, and within the memory limit of config/manager. The attackers are
// users of a real API server: one has the role edit in their namespace and may
// write the custom resources there, another may write the custom resources and
// nothing else. While an attack runs, a tenant of another namespace installs
// one custom resource after another. An attack fails if each of these is
// installed in time, the operator is still the same process, and nothing was
// changed or disclosed that the attacker has no permission for.
//
// A test for a finding must fail with an operator from before its fix: name
// the binary by $CHARTWRIGHT_BINARY.
//
// The package always starts a cluster of its own, and its tests run one after
// another, because they measure how long others wait. Run it while the machine
// does nothing else:
//
//	CHARTWRIGHT_BINARY=$PWD/bin/chartwright go test ./test/attack -v
package attack
