// Package scaffold creates operator projects and keeps them up to date: folders
// with watches.yaml, charts/ and config/, and no code.
//
//	project.go        Init creates a project from the templates in files/project;
//	                  Project.Bundle plans a bundle for OLM
//	settings.go       PROJECT, and the targets of the project's Makefile
//	add.go            Project.Add adds or updates the kind of a chart
//	update.go         Project.Update: another version of a chart, and what it changes
//	remove.go         Project.Remove removes a kind
//	fetched.go        charts from registries and repositories, and the key source
//	request.go        defaults and validation of the request
//	source.go         the chart to add, and its place in the project
//	chart.go          copies of charts, and new charts from files/chart
//	bind.go           the entry of the kind in the watches file
//	refusal.go        changes that require a flag
//	checksums.go      the checksums that reveal edits of copied charts
//	allow.go          the allow block that a chart needs
//	generate.go       Project.Generate: CustomResourceDefinitions and roles
//	samples.go        samples of custom resources
//	plan.go           Plan: the files to create, update and remove
//	watchesfile.go, entry.go, kustomization.go, text.go
//	                  edits of YAML as text
//
// Each operation returns a Plan. Only Plan.Write writes files, so a dry run and a check
// run the same code. A test keeps the static part of this repository's own config/
// equal to the templates.
//
// # Who owns a file
//
// The first line of a generated file says that it is generated. Such a file is
// overwritten each time. A file without that line belongs to the user and is never
// overwritten: to maintain a file by hand, users delete the line. Samples, and all
// files from Init, are only created if they are missing. In watches.yaml and in
// kustomization.yaml only the necessary lines change: comments, order and line endings
// are preserved.
//
// A copied chart belongs to the user, too. checksums.txt in the folder of the charts
// records what add has copied, so that an update never overwrites an edit without a flag.
package scaffold
