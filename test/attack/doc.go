// Package attack attacks a running operator from the position of a tenant.
//
// Each operator runs as a ServiceAccount with the role that "chartwright rbac"
// prints, and within the memory limit of config/manager. The attackers are
// users of a real API server: one has the role edit in their namespace and may
// write the custom resources there, another may write custom resources only. While
// an attack runs, a tenant of another namespace installs one custom resource after
// another. An attack fails if each of these is installed in time, the operator is
// still the same process, and nothing was changed or disclosed without permission.
//
// A test for a vulnerability must fail with an operator from before its fix: set
// the path of the binary in $CHARTWRIGHT_BINARY.
//
// The package always starts its own cluster. Its tests run one after another,
// because they measure how long other tenants wait. Run it on an idle machine:
//
//	CHARTWRIGHT_BINARY=$PWD/bin/chartwright go test ./test/attack -v
package attack
