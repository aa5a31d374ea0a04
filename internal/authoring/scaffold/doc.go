// Package scaffold creates operator projects and keeps them up to date: folders
// with watches.yaml, charts/ and config/, and no code.
//
//	project.go        Init creates a project from the templates in files/project;
//	                  Project.Bundle plans a bundle for OLM
//	add.go            Project.Add makes a kind of a chart
//	chart.go          copies of charts, and new charts from files/chart
//	allow.go          what a chart has to be allowed
//	generate.go       Project.Generate: CustomResourceDefinitions and roles
//	samples.go        samples of custom resources
//	plan.go           Plan: the files to create, update and remove
//	watchesfile.go, entry.go, kustomization.go, text.go
//	                  edits of YAML as text
//
// Each of them returns a Plan. Nothing is written before Plan.Write, so that a dry
// run and a check run the same code. A test keeps the static part of this
// repository's own config/ equal to the templates.
//
// # Who owns a file
//
// A generated file says so in its first line, and is overwritten each time. A
// file without that line belongs to the user and is never written: to take over a
// file, delete the line. A sample, and everything that Init writes, is only
// written if it is missing. In watches.yaml and in kustomization.yaml only the
// necessary lines change, as text: comments, order and line ends stay.
package scaffold
