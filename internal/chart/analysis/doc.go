// Package analysis analyzes the syntax of a chart's templates, without executing them and
// without Helm. It accepts unknown functions.
//
// Parse returns the syntax trees of a template file (templates.go). All files of a chart
// and its subcharts share their named templates, so the analyses work on all files:
//
//   - ReadCalls returns the functions that templates call, with their arguments and the
//     conditions of the calls, and the fields of the root object that templates read. A
//     read of a value is a call named "Values." and its path.
//   - Evaluator computes the texts that an expression can print, and the objects in the
//     documents of a template (documents.go), over all branches.
//   - ReadFeatures returns the parts of .Capabilities that a release can read, and whether
//     the chart uses lookup and delete hooks. includes.go finds the templates that the
//     chart can execute.
package analysis
