// Package plugin is "kubectl chartwright": what a person asks of the operator,
// or wants to know of a release, by one command, with that person's own rights.
//
// The program is the operator's own binary under another name. Run takes the
// whole command line; Named tells by its first word whether it is meant.
//
//	root.go       Run, the root command and its flags, exit codes
//	session.go    what all verbs share: streams, flags, the connection
//	target.go     KIND/NAME to a custom resource: session.target, target.get
//	output.go     -o table|json|yaml: session.print; tables; notes on stderr
//	paint.go      --color: session.painter
//	rights.go     a forbidden request as a sentence: right.explain
//	complete.go   completion of kinds and names
//	ask.go        verbs that ask for something by an annotation: session.asking
//	wait.go       --wait: follow a custom resource to a verdict
//	judge.go      the verdicts: what a status says of a request
//	rollout….go   how far a new chart has come, counted and followed
//	status….go, tree.go, history.go, diff….go, mask.go, record.go
//	              verbs that show something, and what they read it from
//
// A verb is a file: a function newX(*session) that returns its command, listed
// in session.verbs. It resolves its target, reads or writes through it, and
// prints a value by session.print; that value's type is the documented
// structure of -o json and -o yaml, and the table is a view of it.
//
//	func newStatus(s *session) *cobra.Command {
//		return &cobra.Command{
//			Use: "status KIND/NAME", ValidArgsFunction: s.completeTarget,
//			RunE: func(cmd *cobra.Command, args []string) error {
//				t, _, err := s.target(args, 0)
//				…
//				cr, err := t.get(cmd.Context())
//				…
//				return s.print(value, func(w io.Writer) error { … rows(w, …) … })
//			},
//		}
//	}
//
// Everything goes through the API server as the person who calls. Where a right
// is missing, the error is a sentence that names it; where a part can be shown
// without it, it is shown, and session.note says what is not.
package plugin
