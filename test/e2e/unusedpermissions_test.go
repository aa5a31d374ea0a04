package e2e

import "github.com/chartwright/chartwright/test/e2e/harness"

// unusedPermissions are the permissions that "chartwright rbac" grants to the operators
// of these tests and that no request of the whole suite needs. There must be at
// most five.
var unusedPermissions = []harness.Unused{
	{Permission: "get nodes", Purpose: "a ClusterRole in the chart everything grants it, and RBAC requires that its creator has it"},
	{Permission: "list namespaces", Purpose: "the same"},
	{Permission: "get absents.example.com", Purpose: "valuesFrom names a kind that the API server does not serve"},
	{Permission: "list absents.example.com", Purpose: "the same"},
	{Permission: "watch absents.example.com", Purpose: "the same"},
}
