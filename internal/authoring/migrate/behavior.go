package migrate

import "slices"

// topicBehavior is the topic of what differs for everybody.
const topicBehavior = "behavior"

// Behavior is something that this operator does otherwise.
type Behavior struct {
	// What is a word or two, Was what the operator-sdk does, Is what happens
	// here, and Do what to do about it, if anything.
	What, Was, Is, Do string
}

// Behaviors returns what differs for everybody, in the order in which it is
// told.
func Behaviors() []Behavior { return slices.Clone(behaviors) }

var behaviors = []Behavior{
	{
		What: "Schema",
		Was:  "the CRD takes any spec, and a wrong one fails in Helm",
		Is:   "the CRD is made of the chart, and the API server refuses what it does not take",
		Do:   "`chartwright migrate --live` finds resources that it would refuse or cut",
	},
	{
		What: "Upgrades",
		Was:  "the chart is rendered with every reconcile, and an upgrade made where the text differs, so that a random value makes a revision each minute",
		Is:   "an upgrade is made where spec, chart or overrideValues differ; nothing is rendered to find that out",
	},
	{
		What: "Drift",
		Was:  "objects are compared each `reconcilePeriod`, one minute; what somebody removed from a list of a custom resource, or from another namespace, is seen late or never",
		Is:   "a change of a field that the chart sets is undone as it happens; fields that others add stay",
		Do:   "`drift.ignore`, or `drift.mode: Warn`, where somebody changes objects on purpose",
	},
	{
		What: "Server-side apply",
		Was:  "objects are patched from the client",
		Is:   "objects are applied by the server, field manager `chartwright`; list items that have one key twice are made one, fields that the kind has not are dropped, each with an event",
		Do:   "`chartwright migrate --live` finds them by dry run",
	},
	{
		What: "History",
		Was:  "one revision is kept",
		Is:   "the last 10 that were deployed are kept, to roll back to (`maxHistory`)",
	},
	{
		What: "Failed install",
		Was:  "it is uninstalled at once, and installed again",
		Is:   "it is tried again where it stands, ever more slowly",
	},
	{
		What: "Failed upgrade",
		Was:  "it is rolled back at once, and tried again for ever",
		Is:   "it is tried again, ever more slowly",
		Do:   "`onFailure: Rollback` in the entry rolls it back after `retries`, and holds it there until the spec is edited",
	},
	{
		What: "Release names",
		Was:  "that of the resource, up to 53 characters; longer ones fail",
		Is:   "that of the resource, with dashes for dots, and cut with a hash where it is longer; where another resource's release has it, `<name>-<kind>`",
	},
	{
		What: "Hooks",
		Was:  "a hook that hangs holds a worker for ever",
		Is:   "each has `timeout`, 5 minutes",
		Do:   "set `timeout` in the entry where a hook takes longer",
	},
	{
		What: "Beyond the namespace",
		Was:  "a chart may make objects in any namespace, cluster-scoped ones, and look up all",
		Is:   "what the entry's `allow` names",
		Do:   "write the block that is shown for the kind",
	},
	{
		What: "Finalizer",
		Was:  "`helm.sdk.operatorframework.io/uninstall-release`, put on after the install",
		Is:   "`chartwright.dev/uninstall`, put on before it",
	},
	{
		What: "Conditions",
		Was:  "`Initialized`, `Deployed`, `ReleaseFailed`, `Irreconcilable`; `Deployed` once Helm is through",
		Is:   "`Ready` once the objects do their work, `Reconciling`, `Stalled`, and `Deployed`; the others on resources that carry them already",
		Do:   "wait for `Ready` rather than `Deployed`",
	},
	{
		What: "Status",
		Was:  "`deployedRelease.manifest` holds all that was rendered, Secrets too",
		Is:   "`deployedRelease.name` stays, the manifest goes",
		Do:   "`helm get manifest` shows it",
	},
	{
		What: "Metrics",
		Was:  "`helm_operator_build_info`, `resource_created_at_seconds`",
		Is:   "`chartwright_build_info`, `chartwright_releases` and more, by kind",
		Do:   "look through dashboards and alerts",
	},
	{
		What: "Rights",
		Was:  "`*` on what the chart makes, and on Secrets",
		Is:   "the verbs that are used; what is missing is told by `/readyz` and on each resource",
		Do:   "`chartwright rbac` derives the role",
	},
}

// behaviorFindings tells what differs for everybody.
func (*Project) behaviorFindings() []Finding {
	f := finder{topic: topicBehavior}
	for _, b := range behaviors {
		f.addf(Changes, "", "%s: %s; until now: %s", b.What, b.Is, b.Was).Do = b.Do
	}
	return f.findings
}
