// Package plugin implements the kubectl plugin "kubectl chartwright". It shows custom
// resources and their releases, and sends requests to the operator. It uses the
// permissions of its user.
//
// The plugin is the same binary as the operator, installed under another name. Run runs
// a command line; Named reports whether the name of the program is that of the plugin.
//
//	root.go         Run, the root command and its flags, exit codes, completion
//	target.go       session: streams, flags and clients; KIND/NAME to a custom
//	                resource; errors that name missing permissions
//	output.go       -o table|json|yaml, tables and trees, notes on standard error
//	terminal.go     --color, and escaping of control characters
//	requests.go     rollback, unhold, pause, resume, reconcile: requests by an
//	                annotation of the custom resource
//	wait.go         --wait: watch a custom resource until the outcome is known
//	list.go         list and check
//	rollout….go     rollout: summary and progress of a new chart
//	status….go      status: the custom resource, its release and its objects
//	tree….go        tree: what a custom resource depends on, and what depends on it
//	history.go      history, and reading of release records
//	diff….go        diff: two revisions, or a revision and an edited spec
//	version.go      version, also for the operator's CLI
//
// Each command has a function newX(*session), which Command adds to the root. The
// command prints its output with session.print. The type of the output defines the
// structure of -o json and -o yaml, and the table is formatted from it.
//
// If a permission is missing, the error names it. If the rest of the output can still be
// shown, a note names the permission instead.
package plugin
