// Package migrate tells what moving an operator-sdk Helm project over to this
// operator takes. It changes nothing, neither files nor a cluster.
//
//	project, err := migrate.Read(".", nil)
//	findings, err := project.Findings(migrate.Options{Flags: isFlagOfRun})
//	live, err := migrate.NewLive(config, project, nil)
//	more, err := live.Findings(ctx)
//
// A Finding is one thing that was found: what it is about, whether something
// would break, what is to be done, and where that is mechanical the very lines.
// There are two sources:
//
//   - the project's files. Read takes them in; each file of this package after
//     that looks at one kind of them (layout.go at PROJECT, entries.go at
//     watches.yaml, container.go at the Dockerfile, manager.go at the Deployment,
//     …) and needs nothing but their text;
//   - the cluster (live.go): custom resources, the records of their releases
//     (release.go) and what server-side apply says of the objects that they
//     render (dryrun.go). What comes from there is turned into plain data first,
//     and held against the rules in resource.go, which the samples of the
//     project are held against, too.
//
// What differs for everybody stands in behavior.go.
package migrate
