// Package plugin implements "kubectl chartwright": it shows custom resources and
// their releases, and sends requests to the operator, with the permissions of
// the user who runs it.
//
// The plugin is the operator's own binary under another name. Run takes the whole
// command line; Named reports whether its first word names the plugin.
//
//	root.go         Run, the root command and its flags, exit codes, completion
//	target.go       session (streams, flags, connection), KIND/NAME to a custom
//	                resource, missing permissions as errors
//	output.go       -o table|json|yaml, tables and trees, notes on stderr
//	terminal.go     --color, and escaping of control characters
//	requests.go     rollback, resume, pause, unpause, reconcile: requests by an
//	                annotation of the custom resource
//	wait.go         --wait: follow a custom resource until its status answers
//	rollout….go     rollout: progress of a new chart, counted and followed
//	status….go      status: the custom resource, its release and its objects
//	history.go      history, and how stored revisions are read
//	diff….go        diff: two revisions, or a revision and an edited spec
//
// Each verb is a function newX(*session) that returns its command, listed in
// session.verbs. It resolves its target, reads or writes through it, and prints a
// value by session.print. The type of that value is the documented structure of
// -o json and -o yaml, and the table is a view of it.
//
// If a permission is missing, the error names it. If something can be shown
// without it, it is shown, and session.note reports what is left out.
package plugin
