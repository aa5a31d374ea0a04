// Package scaffold makes operator projects and keeps them up to date: folders
// with watches.yaml, charts/ and config/, and no line of code.
//
//   - Init writes a new project, from the templates in files/project. The static
//     part of this repository's own config/ is made from the same files, which a
//     test sees to.
//   - Project.Add makes a kind of a chart: a copy of the chart in charts/, an
//     entry in watches.yaml, and what follows from them.
//   - Project.Generate writes what follows from watches.yaml and the charts:
//     CustomResourceDefinitions, the operator's rights, people's rights, samples.
//
// Each returns a Plan, which tells what becomes of every file that is concerned.
// Nothing is written before Plan.Write, so that a dry run and a check are the
// same code as the real thing.
//
// # Whose files these are
//
// A generated file says so in its first line, and is written anew each time.
// One without that line is a person's, and is left as it is: deleting the line
// is how to take a file over. A sample, and all that Init writes, is written
// where it is missing. Of files that are a person's and ours, watches.yaml and
// the kustomization.yaml of a folder, only the lines change that have to, as
// text: comments, order and line ends stay.
package scaffold
