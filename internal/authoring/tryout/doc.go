// Package tryout serves a chart as a kind, and creates a custom resource of it, so that
// chart authors see their chart under an operator without a project.
//
// tryout.go runs the steps, and cluster.go starts and stops the local cluster. The package
// neither runs the operator nor prints the status of the custom resource itself: command
// try passes functions for that.
package tryout
