// Package permissions finds out which RBAC rules the operator's role lacks.
//
// Start at checker.go: the Checker compares the rules that each kind requires with
// those that the operator has, by SelfSubjectRulesReviews, and reports a change of the
// missing rules. It derives the rules of a chart only after a refused request. While no
// rule is missing, it sends no requests. rules.go compares required rules with existing
// ones. refused.go reads, from an error of the API server, which rule would have allowed a
// request.
package permissions
