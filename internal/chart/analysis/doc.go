// Package analysis reads the syntax of a chart's templates. It executes nothing,
// and functions need not be known. It knows nothing of Helm.
//
// Parse returns the syntax trees of a template file, and Walk visits their nodes.
// The questions that the rest of the program has about templates each have a file:
//
//   - features.go: which parts of .Capabilities can a release read, does it look
//     up objects, does it have delete hooks? includes.go finds the templates that
//     the chart can execute at all.
package analysis
