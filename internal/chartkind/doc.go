// Package chartkind defines the custom resource ChartKind, which adds a kind to a running
// operator, and decides on it; pure.
//
// resource.go has its fields, whose CRD is in config/chartkinds. entry.go turns the spec
// into an entry of a watches file, so that both have the same parser and the same checks.
// limits.go refuses what the administrator does not allow to ChartKinds. conditions.go
// computes the status from the facts that package operator/chartkinds collects.
package chartkind
