// Package analysis reads the syntax of a chart's templates. It executes nothing,
// functions need not be known, and nothing here depends on Helm.
//
// Parse returns the syntax trees of a template file (templates.go). Named
// templates are shared by all files of a chart and its subcharts, so that every
// question is about all files together:
//
//   - ReadCalls: which functions does each template call, with which arguments,
//     which fields of the root object does it read, and what decides whether the
//     call is made? A read of a value is a call named "Values." and its path.
//   - Evaluator: which texts can an expression print, and which objects do the
//     documents of a template name (documents.go), in any branch?
//   - ReadFeatures: which parts of .Capabilities can a release read, does it look
//     up objects, does it have delete hooks? includes.go finds the templates that
//     the chart can execute at all.
package analysis
