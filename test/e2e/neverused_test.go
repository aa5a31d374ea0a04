package e2e

import "github.com/chartwright/chartwright/test/e2e/harness"

// neverUsed are the rights that "chartwright rbac" gives to the operators of
// these tests and that no request of the whole suite needs. There are to be at
// most five.
var neverUsed = []harness.Unused{
	{Permission: "get nodes", Purpose: "a ClusterRole of the chart everything grants it, which only who holds it may"},
	{Permission: "list namespaces", Purpose: "the same"},
}
