// Package attack attacks a running operator from outside, as a tenant would.
//
// Each operator runs as a ServiceAccount with the role that "chartwright rbac"
// prints, and within the memory limit of config/manager. The attackers are
// users of a real API server: one has the role edit in their namespace and can
// write custom resources there, another can only write custom resources. During
// an attack, a tenant of another namespace installs one custom resource after
// another. The attack is repelled if each of these is installed in time, the
// operator is still the same process, and nothing was changed or disclosed
// without permission.
//
// A test for a finding must fail with an operator from before the fix, given by
// $CHARTWRIGHT_BINARY.
//
// The package always starts its own cluster, and its tests run one after
// another, because they measure how long others wait. Run it on an otherwise
// idle machine:
//
//	CHARTWRIGHT_BINARY=$PWD/bin/chartwright go test ./test/attack -v
package attack
