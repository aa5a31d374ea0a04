package lint

// Severity is how bad a finding is.
type Severity string

// Severities. An error makes lint fail, a warning with --strict alone.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Rule is one thing that is looked for.
type Rule struct {
	Name string `json:"name"`
	// Severity is that of most findings; some are told apart by their weight.
	Severity Severity `json:"severity"`
	// Finds says what is found, Why what it does under an operator, and Fix what
	// to do about it.
	Finds string `json:"finds"`
	Why   string `json:"why"`
	Fix   string `json:"fix"`
}

// Rules returns all rules, in the order in which they are documented.
func Rules() []Rule { return rules }

var rules = []Rule{
	ruleHelm, ruleNotRendered, ruleExample, ruleNoSchema, ruleSchemaLoss, ruleSchemaUseless,
	ruleRandom, ruleTime, ruleRevision, rulePhase, ruleLookup, ruleLookupAway, rulePasswords,
	ruleNoFile, ruleName, ruleClusterName, ruleClusterPlace, ruleNotAllowed, ruleCRD, ruleSize,
	ruleHookPolicy, ruleHookLeft, ruleDeleteHook, ruleRights, ruleUnknown,
}

var (
	ruleHelm = Rule{
		Name: "helm", Severity: Error,
		Finds: "what `helm lint` calls an error or a warning, and a chart that cannot be loaded or rendered",
		Why:   "the operator renders by Helm's own code, so that what Helm cannot use never becomes a release",
		Fix:   "as Helm says",
	}
	ruleNotRendered = Rule{
		Name: "not-rendered", Severity: Warning,
		Finds: "a chart that renders neither with its defaults nor with any `ci/*-values.yaml`",
		Why:   "the rules that look at rendered objects had nothing to look at",
		Fix:   "add `ci/minimal-values.yaml` with the values that have no default; `helm lint` and chart-testing use such files, too",
	}
	ruleExample = Rule{
		Name: "example-refused", Severity: Error,
		Finds: "a file `ci/*-values.yaml` that is not YAML or that the chart's own schema refuses",
		Why:   "either the example or the schema is wrong, and the schema becomes the CRD",
		Fix:   "correct the file or the schema",
	}
	ruleNoSchema = Rule{
		Name: "schema-missing", Severity: Warning,
		Finds: "a chart without `values.schema.json`",
		Why:   "nothing checks a custom resource when it is applied: a misspelled field is silently without effect, and a wrong type fails later, in a template",
		Fix:   "write `values.schema.json`; `chartwright crd` shows what becomes of it",
	}
	ruleSchemaLoss = Rule{
		Name: "schema-not-expressible", Severity: Info,
		Finds: "a part of the schema that a CRD cannot express; a warning where nobody checks it",
		Why:   "the API server takes what this part refuses; the fault is then told by the condition Ready and not by `kubectl apply`",
		Fix:   "nothing, if the later answer will do; else say it by what a CRD knows: type, enum, pattern, minimum, maximum, required",
	}
	ruleSchemaUseless = Rule{
		Name: "schema-unusable", Severity: Error,
		Finds: "a schema that no CRD can be made of",
		Why:   "without a CRD there is no kind",
		Fix:   "as the message says",
	}
	ruleRandom = Rule{
		Name: "random-value", Severity: Warning,
		Finds: "a random value (`randAlphaNum`, `genCA`, `uuidv4`, `htpasswd`, …) that each render makes anew",
		Why:   "every edit of a custom resource is a new revision, and each has another value: passwords change under clients that have the old one, certificates are exchanged, pods restart",
		Fix:   "read the value back by `lookup` and make one only where there is none; or let the schema require it; or take it from a Secret by `valuesFrom`",
	}
	ruleTime = Rule{
		Name: "time-dependent", Severity: Warning,
		Finds: "`now` or `ago`",
		Why:   "every revision differs from the one before in this place, so that an edit of anything restarts what carries the time",
		Fix:   "leave the time out: objects have a creationTimestamp, and revisions the time at which they were deployed",
	}
	ruleRevision = Rule{
		Name: "release-revision", Severity: Warning,
		Finds: "`.Release.Revision`",
		Why:   "it grows with every edit, retry and rollback, so that what carries it changes each time though nothing else did; in a pod template it restarts the pods",
		Fix:   "use a checksum of what matters, as `sha256sum` of the configuration",
	}
	rulePhase = Rule{
		Name: "release-phase", Severity: Warning,
		Finds: "`.Release.IsInstall` or `.Release.IsUpgrade`",
		Why:   "revision 1 differs from revision 2 for the same spec: what is rendered at the install alone is deleted by the next edit, and a release that is taken over from Helm begins with an upgrade",
		Fix:   "use a hook (`helm.sh/hook: pre-install`) for what is to be done once",
	}
	ruleLookup = Rule{
		Name: "lookup", Severity: Info,
		Finds: "`lookup`",
		Why:   "what is read is not watched: a change of it is seen when the custom resource is next looked at, and `reconcilePeriod` says how often that is; the operator needs the right to read it; `chartwright render` and GitOps tools, which render without a cluster, find nothing",
		Fix:   "nothing, where a value that was made once is read back; else take the value from the spec or by `valuesFrom`, which is watched",
	}
	ruleLookupAway = Rule{
		Name: "lookup-elsewhere", Severity: Warning,
		Finds: "`lookup` outside the release's namespace, or in one that is computed; an error where the entry in watches.yaml forbids it",
		Why:   "by default a template may read the release's namespace alone, since values steer it and whoever writes a spec could read what is not theirs; the release then fails with NotAllowed",
		Fix:   "give `.Release.Namespace` as the namespace; or set `allow.lookup: all` in the watches entry, if no value of the spec gets into the call",
	}
	rulePasswords = Rule{
		Name: "upgrade-needs-password", Severity: Warning,
		Finds: "a chart that generates passwords at the install and refuses an upgrade that does not set them, as many Bitnami charts do (`PASSWORDS ERROR`)",
		Why:   "the first edit of a custom resource fails with RenderFailed, and so does every later one",
		Fix:   "add to the watches entry the `valuesFrom` that the finding prints: it reads each password back from the Secret that the release has created; see [chart-authors.md](chart-authors.md#generated-passwords)",
	}
	ruleNoFile = Rule{
		Name: "missing-file", Severity: Warning,
		Finds: "`.Files.Get` of a file that the chart has not",
		Why:   "Helm renders nothing in its place and says nothing; often `.helmignore` has left the file out",
		Fix:   "add the file, or take it out of `.helmignore`",
	}
	ruleName = Rule{
		Name: "name-ignores-release", Severity: Error,
		Finds: "an object whose name is the same for every release",
		Why:   "the second custom resource of a namespace cannot be installed: the object belongs to the first (reason ObjectConflict)",
		Fix:   "begin the name with `{{ .Release.Name }}`",
	}
	ruleClusterName = Rule{
		Name: "cluster-name-shared", Severity: Error,
		Finds: "a cluster-scoped object, or one in a fixed namespace, whose name is the same for every release",
		Why:   "the second custom resource of the whole cluster cannot be installed: the object belongs to the first (reason ObjectConflict)",
		Fix:   "begin the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`; or take the object out of the chart, if there is to be one for all",
	}
	ruleClusterPlace = Rule{
		Name: "cluster-name-ignores-namespace", Severity: Warning,
		Finds: "a cluster-scoped object, or one in a fixed namespace, whose name ignores the release's namespace",
		Why:   "custom resources of one name in two namespaces would share it, and the second cannot be installed (reason ObjectConflict)",
		Fix:   "begin the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`",
	}
	ruleNotAllowed = Rule{
		Name: "not-allowed", Severity: Error,
		Finds: "an object in another namespace, or a cluster-scoped one, that the `allow` block of the watches entry does not name; info where the chart is linted without an entry, or only some values bring the object",
		Why:   "the operator refuses the release before anything is written (condition Ready, reason NotAllowed)",
		Fix:   "add to the entry what the message says, if the chart has business there",
	}
	ruleCRD = Rule{
		Name: "crd-without-keep", Severity: Error,
		Finds: "a CustomResourceDefinition in `templates/` without `helm.sh/resource-policy: keep`",
		Why:   "it is an object of the release: with the custom resource that brought it the definition is deleted, and with it every resource of that kind in the whole cluster",
		Fix:   "move it to `crds/`, which is never deleted; or annotate it with `helm.sh/resource-policy: keep`",
	}
	ruleSize = Rule{
		Name: "release-size", Severity: Warning,
		Finds: "a release of which the record takes more than half of the 1 MiB that a Secret holds; an error where it does not fit",
		Why:   "a release that does not fit is refused (reason ReleaseTooLarge), and values make it grow",
		Fix:   "take large files out of the chart: put them into the image, or into ConfigMaps of their own that the chart refers to",
	}
	ruleHookPolicy = Rule{
		Name: "hook-delete-policy", Severity: Warning,
		Finds: "a hook without `helm.sh/hook-delete-policy`",
		Why:   "Helm then deletes it before it makes the next one, and never else: its Job and pods stay until the custom resource is deleted",
		Fix:   "annotate it with `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded`",
	}
	ruleHookLeft = Rule{
		Name: "hook-left-behind", Severity: Warning,
		Finds: "a hook whose delete policies lack `before-hook-creation`",
		Why:   "where it fails, or the operator is stopped while it runs, it stays; every retry then finds its name taken and fails for that reason, for ever",
		Fix:   "add `before-hook-creation` to `helm.sh/hook-delete-policy`",
	}
	ruleDeleteHook = Rule{
		Name: "delete-hook", Severity: Info,
		Finds: "a `pre-delete` or `post-delete` hook",
		Why:   "a custom resource stays until the hook has succeeded, and with it its namespace; the garbage collector must not come first, so that objects carry no ownerReference",
		Fix:   "nothing, if the hook is sure to end; people can skip it by the annotation `chartwright.dev/uninstall-disable-hooks`",
	}
	ruleRights = Rule{
		Name: "rights-unresolved", Severity: Warning,
		Finds: "objects that a template makes, or reads, of which the kind cannot be found out",
		Why:   "`chartwright rbac` cannot give the operator the rights that it needs for them, and the release fails when they come up",
		Fix:   "write apiVersion and kind as they are; or name the rights in the watches entry, see docs/rbac.md",
	}
	ruleUnknown = Rule{
		Name: "unknown-rule", Severity: Warning,
		Finds: "a rule that is silenced and does not exist",
		Why:   "nothing is silenced by it",
		Fix:   "correct the name: `chartwright lint --rules` lists them",
	}
)
