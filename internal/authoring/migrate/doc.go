// Package migrate reports what moving an operator-sdk Helm project to Chartwright
// requires. It changes neither files nor the cluster.
//
//	project, err := migrate.Read(".", nil)
//	findings, err := project.Findings(migrate.Options{Flags: isFlagOfRun})
//	more, err := project.LiveFindings(ctx, config, nil)
//
// A Finding has a verdict (Breaks, ToDo, Works, …), a description, what to do and, if
// possible, the lines to write.
//
// Some findings come from the files of the project, which Read loads:
//
//	project.go       Read, Findings, and the differences that affect every project
//	layout.go        PROJECT, Dockerfile, Makefile
//	deployment.go    config/manager, config/default, config/prometheus
//	entry.go         the entries of watches.yaml, their charts and permissions
//	crd.go           config/crd and config/samples against the derived CRD
//
// Others come from the cluster:
//
//	live.go          the kinds and their custom resources
//	release.go       the record of each release, and whether it can be adopted
//	dryrun.go        what a server-side apply of the rendered objects would change
//
// resource.go checks custom resources, of the cluster and of the samples, against
// the derived CRD.
package migrate
