// Package lint finds problems in a chart, above all those that are harmless under
// a person's `helm install` and are harmful under an operator. An operator
// renders the chart again after every edit, and serves many custom resources
// with one chart.
//
// Rules lists the rules (rule.go), and Run applies them. There are three kinds of
// evidence:
//
//   - the syntax of the templates (functions.go, passwords.go): functions whose
//     results differ from one revision to the next, and reads of the cluster;
//   - renders for several releases (objects.go) with several sets of values
//     (trials.go): objects that two custom resources would share, that are not
//     allowed, or that stay behind;
//   - reports of other packages: Helm's own lint and the permissions that are
//     derived from the chart (helm.go), and its CRD (schema.go).
//
// Each finding has a file and, where there is one, a line. Its rule says why it
// matters and what to do. A chart silences rules (lint.go) where its author knows
// better.
package lint
