package lint

// Severity is the severity of a finding.
type Severity string

// Severities. An error makes lint fail, a warning only with --strict.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Rule is one check of a chart.
type Rule struct {
	Name string `json:"name"`
	// Severity is the severity of most findings of the rule. Some findings have another one.
	Severity Severity `json:"severity"`
	// Finds describes the problem, Why its effect under an operator, and Fix the
	// solution.
	Finds string `json:"finds"`
	Why   string `json:"why"`
	Fix   string `json:"fix"`
}

// Rules returns all rules in the order of the documentation.
func Rules() []Rule { return rules }

var rules = []Rule{
	ruleHelm, ruleNotRendered, ruleExample, ruleNoSchema, ruleSchemaLoss, ruleSchemaUseless,
	ruleRandom, ruleTime, ruleRevision, rulePhase, ruleLookup, ruleLookupAway, rulePasswords,
	ruleNoFile, ruleName, ruleClusterName, ruleClusterPlace, ruleNotAllowed, ruleCRD, ruleSize,
	ruleHookPolicy, ruleHookLeft, ruleDeleteHook, rulePermissions, ruleUnknown,
}

var (
	ruleHelm = Rule{
		Name: "helm", Severity: Error,
		Finds: "a problem that `helm lint` reports as error or warning, and a chart that cannot be loaded or rendered",
		Why:   "the operator renders with Helm's code, so it cannot install a chart that Helm cannot use",
		Fix:   "follow Helm's message",
	}
	ruleNotRendered = Rule{
		Name: "not-rendered", Severity: Warning,
		Finds: "a chart that renders neither with its defaults nor with any `ci/*-values.yaml`",
		Why:   "the rules that check rendered objects have no objects to check",
		Fix:   "add `ci/minimal-values.yaml` with the values that have no default; `helm lint` and chart-testing use such files too",
	}
	ruleExample = Rule{
		Name: "example-refused", Severity: Error,
		Finds: "a file `ci/*-values.yaml` that is not YAML or that the chart's own schema rejects",
		Why:   "either the example or the schema is wrong, and the CRD is derived from the schema",
		Fix:   "correct the file or the schema",
	}
	ruleNoSchema = Rule{
		Name: "schema-missing", Severity: Warning,
		Finds: "a chart without `values.schema.json`",
		Why:   "the API server cannot validate custom resources: a misspelled field has no effect and causes no error, and a wrong type fails later, in a template",
		Fix:   "write `values.schema.json`; `chartwright crd` prints the CRD that is derived from it",
	}
	ruleSchemaLoss = Rule{
		Name: "schema-not-expressible", Severity: Info,
		Finds: "a part of the schema that a CRD cannot express; a warning if the operator does not check it either",
		Why:   "the API server accepts custom resources that violate this part; the condition Ready reports the error instead of `kubectl apply`",
		Fix:   "nothing, if the later error is acceptable; otherwise use keywords that a CRD supports: type, enum, pattern, minimum, maximum, required",
	}
	ruleSchemaUseless = Rule{
		Name: "schema-unusable", Severity: Error,
		Finds: "a schema that cannot be converted into a CRD",
		Why:   "without a CRD, the kind cannot be served",
		Fix:   "follow the message",
	}
	ruleRandom = Rule{
		Name: "random-value", Severity: Warning,
		Finds: "a random value (`randAlphaNum`, `genCA`, `uuidv4`, `htpasswd`, …) that each render generates again",
		Why:   "every edit of a custom resource creates a revision with another value: passwords change while clients still use the old ones, certificates are replaced, pods restart",
		Fix:   "read the existing value with `lookup`, and generate a value only if none exists; or require the value in the schema; or read it from a Secret with `valuesFrom`",
	}
	ruleTime = Rule{
		Name: "time-dependent", Severity: Warning,
		Finds: "`now` or `ago`",
		Why:   "the rendered object differs in every revision, so any edit of a custom resource changes or restarts the object that contains the time",
		Fix:   "remove the time: objects have a creationTimestamp, and revisions record when they were deployed",
	}
	ruleRevision = Rule{
		Name: "release-revision", Severity: Warning,
		Finds: "`.Release.Revision`",
		Why:   "the revision increases with every edit, retry and rollback, so the object that contains it changes each time although nothing else changed; in a pod template, that restarts the pods",
		Fix:   "use a checksum of the relevant content, such as `sha256sum` of the configuration",
	}
	rulePhase = Rule{
		Name: "release-phase", Severity: Warning,
		Finds: "`.Release.IsInstall` or `.Release.IsUpgrade`",
		Why:   "revisions 1 and 2 differ for the same spec: the next edit deletes objects that are rendered only for the install, and an adopted Helm release starts with an upgrade",
		Fix:   "use a hook (`helm.sh/hook: pre-install`) for one-time tasks",
	}
	ruleLookup = Rule{
		Name: "lookup", Severity: Info,
		Finds: "`lookup`",
		Why:   "the operator does not watch the objects that a template reads: a change takes effect with the next reconciliation of the custom resource, see `reconcilePeriod`; the operator needs permission to read the objects; `chartwright render` and GitOps tools render without a cluster, so `lookup` returns nothing",
		Fix:   "nothing, if the template reads back a value that it generated once; otherwise take the value from the spec or from `valuesFrom`, which is watched",
	}
	ruleLookupAway = Rule{
		Name: "lookup-elsewhere", Severity: Warning,
		Finds: "`lookup` outside the release's namespace, or in a computed namespace; an error if the entry in watches.yaml forbids it",
		Why:   "by default, a template may only read the release's namespace, because values can control it: the author of a spec could otherwise read objects of other users; the release fails with NotAllowed",
		Fix:   "pass `.Release.Namespace` as the namespace; or set `allow.lookup: all` in the watches entry, if no value of the spec reaches the call",
	}
	rulePasswords = Rule{
		Name: "upgrade-needs-password", Severity: Warning,
		Finds: "a chart that generates passwords during the install and rejects an upgrade that does not set them, as many Bitnami charts do (`PASSWORDS ERROR`)",
		Why:   "the first edit of a custom resource fails with RenderFailed, and so does every later edit",
		Fix:   "add to the watches entry the `valuesFrom` that the finding prints: it reads each password back from the Secret that the release has created; see [Your own chart](../get-started/your-own-chart.md#generated-passwords)",
	}
	ruleNoFile = Rule{
		Name: "missing-file", Severity: Warning,
		Finds: "`.Files.Get` of a file that is not in the chart",
		Why:   "Helm renders an empty string without an error; often `.helmignore` excludes the file",
		Fix:   "add the file, or remove it from `.helmignore`",
	}
	ruleName = Rule{
		Name: "name-ignores-release", Severity: Error,
		Finds: "an object with the same name in every release",
		Why:   "only one custom resource per namespace can be installed: the object is owned by the first one (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Name }}`",
	}
	ruleClusterName = Rule{
		Name: "cluster-name-shared", Severity: Error,
		Finds: "a cluster-scoped object, or an object in a fixed namespace, with the same name in every release",
		Why:   "only one custom resource per cluster can be installed: the object is owned by the first one (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`; or remove the object from the chart, if all releases share it",
	}
	ruleClusterPlace = Rule{
		Name: "cluster-name-ignores-namespace", Severity: Warning,
		Finds: "a cluster-scoped object, or an object in a fixed namespace, whose name does not contain the release's namespace",
		Why:   "two custom resources with the same name in different namespaces would share the object, so the second one cannot be installed (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`",
	}
	ruleNotAllowed = Rule{
		Name: "not-allowed", Severity: Error,
		Finds: "an object in another namespace, or a cluster-scoped object, that the `allow` block of the watches entry does not allow; info if the chart is linted without an entry, or if the object is rendered only with some values",
		Why:   "the operator rejects the release before it writes anything (condition Ready, reason NotAllowed)",
		Fix:   "add the setting in the message to the entry, if the chart needs the object",
	}
	ruleCRD = Rule{
		Name: "crd-without-keep", Severity: Error,
		Finds: "a CustomResourceDefinition in `templates/` without `helm.sh/resource-policy: keep`",
		Why:   "the CRD is an object of one release: when its custom resource is deleted, the CRD is deleted, and with it every resource of its kind in the whole cluster",
		Fix:   "move the CRD to `crds/`, whose CRDs are never deleted; or annotate it with `helm.sh/resource-policy: keep`",
	}
	ruleSize = Rule{
		Name: "release-size", Severity: Warning,
		Finds: "a release whose record takes more than half of the 1 MiB that a Secret can hold; an error if the record does not fit",
		Why:   "the operator rejects a release that does not fit (reason ReleaseTooLarge), and values increase the size",
		Fix:   "remove large files from the chart: put them into the image, or into separate ConfigMaps that the chart references",
	}
	ruleHookPolicy = Rule{
		Name: "hook-delete-policy", Severity: Warning,
		Finds: "a hook without `helm.sh/hook-delete-policy`",
		Why:   "Helm deletes the hook only before it creates the next one: its Job and pods remain until the custom resource is deleted",
		Fix:   "annotate the hook with `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded`",
	}
	ruleHookLeft = Rule{
		Name: "hook-left-behind", Severity: Warning,
		Finds: "a hook whose delete policies do not include `before-hook-creation`",
		Why:   "the hook remains if it fails, or if the operator stops while it runs; every retry then fails because an object with that name exists",
		Fix:   "add `before-hook-creation` to `helm.sh/hook-delete-policy`",
	}
	ruleDeleteHook = Rule{
		Name: "delete-hook", Severity: Info,
		Finds: "a `pre-delete` or `post-delete` hook",
		Why:   "the custom resource and its namespace are not deleted until the hook has succeeded; the garbage collector must not delete objects before the hook runs, so the objects have no ownerReference",
		Fix:   "nothing, if the hook always ends; users can skip the hook with the annotation `chartwright.dev/uninstall-disable-hooks`",
	}
	rulePermissions = Rule{
		Name: "rights-unresolved", Severity: Warning,
		Finds: "objects that a template renders or reads, and whose kind cannot be determined",
		Why:   "`chartwright rbac` cannot derive the permissions that the operator needs for them, and the release fails when it renders such an object",
		Fix:   "write apiVersion and kind as literals; or add the permissions to the watches entry, see docs/reference/rbac.md",
	}
	ruleUnknown = Rule{
		Name: "unknown-rule", Severity: Warning,
		Finds: "an ignore comment or annotation with a rule that does not exist",
		Why:   "it has no effect",
		Fix:   "correct the name: `chartwright lint --rules` lists the rules",
	}
)
