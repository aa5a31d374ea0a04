// Package lint finds problems in a chart, above all those that are harmless with
// `helm install` and harmful with an operator. An operator renders the chart again
// after every edit, and serves many custom resources with one chart.
//
// Rules lists the rules (rule.go), and Run applies them. The rules use
// three sources:
//
//   - the syntax of the templates (functions.go, passwords.go): functions whose
//     results differ from one revision to the next, and reads of the cluster;
//   - renders for several releases (objects.go) with several sets of values
//     (trials.go): objects that two custom resources would share, that are not
//     allowed, or that remain after the release, and the allow block that an entry
//     without one needs (allow.go);
//   - reports of other packages: Helm's own lint and the permissions that are
//     derived from the chart (helm.go), and its CRD (schema.go).
//
// Each finding has a file and, if known, a line. Its rule explains why it matters
// and what to do. A chart author can silence rules (lint.go).
package lint
