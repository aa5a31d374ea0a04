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
	ruleFormat, ruleNumberFormat, ruleNumberType, ruleRandom, ruleTime, ruleRevision, rulePhase, ruleLookup, ruleLookupAway, rulePasswords,
	ruleNoFile, ruleSeparator, ruleIdentity, ruleName, ruleClusterName, ruleClusterPlace, ruleNotAllowed, ruleNoAllow, ruleCRD, ruleSize,
	ruleHookPolicy, ruleHookLeft, ruleDeleteHook, rulePermissions, ruleUnknown,
}

var (
	ruleHelm = Rule{
		Name: "helm", Severity: Error,
		Finds: "a problem that `helm lint` reports, or a chart that cannot be loaded or rendered",
		Why:   "the operator cannot install a chart that Helm cannot use",
		Fix:   "follow Helm's message",
	}
	ruleNotRendered = Rule{
		Name: "not-rendered", Severity: Warning,
		Finds: "a chart that renders neither with its defaults nor with any `ci/*-values.yaml`",
		Why:   "`chartwright lint` has no objects to check",
		Fix:   "add `ci/minimal-values.yaml` with the values that have no default",
	}
	ruleExample = Rule{
		Name: "example-refused", Severity: Error,
		Finds: "a file `ci/*-values.yaml` that is not YAML, or that the schema rejects",
		Why:   "the file or the schema is wrong",
		Fix:   "correct the file or the schema",
	}
	ruleNoSchema = Rule{
		Name: "schema-missing", Severity: Warning,
		Finds: "a chart without `values.schema.json`",
		Why:   "the API server cannot validate custom resources: a misspelled field causes no error",
		Fix:   "write `values.schema.json`; `chartwright schema CHART` prints a start",
	}
	ruleSchemaLoss = Rule{
		Name: "schema-not-expressible", Severity: Info,
		Finds: "a part of the schema that a CRD cannot express; warning if Helm does not check it either",
		Why:   "errors appear in the condition Ready, not in `kubectl apply`",
		Fix:   "nothing, if the later error is acceptable; otherwise use keywords that a CRD supports: type, enum, pattern, minimum, maximum, required",
	}
	ruleSchemaUseless = Rule{
		Name: "schema-unusable", Severity: Error,
		Finds: "a schema that cannot be converted into a CRD",
		Why:   "without a CRD, the kind cannot be served",
		Fix:   "follow the message",
	}
	ruleFormat = Rule{
		Name: "format-error", Severity: Error,
		Finds: "a text with an error of `printf`, such as `%!d(float64=80)`",
		Why:   "Helm reports no error, and the object gets the text",
		Fix:   "convert the value, for example with `int`; or format it with `%v`",
	}
	ruleNumberFormat = Rule{
		Name: "number-format", Severity: Warning,
		Finds: "a number that Helm prints as `1e+06` or rounds, because numbers in values are `float64`",
		Why:   "programs often do not accept this format, and numbers above 2^53 are not exact",
		Fix:   "convert the number with `int64`; or write it as a string in the values",
	}
	ruleNumberType = Rule{
		Name: "number-type", Severity: Warning,
		Finds: "an object that differs if numbers in values are integers, as with operator-sdk and `helm --set`, and not `float64`, as with `helm -f`",
		Why:   "the chart works with only one of them",
		Fix:   "convert numbers with `int` or `float64` before `printf`, `kindIs` and comparisons",
	}
	ruleRandom = Rule{
		Name: "random-value", Severity: Warning,
		Finds: "a random value (`randAlphaNum`, `genCA`, …) that each render generates again",
		Why:   "every edit of a custom resource changes passwords and certificates, and restarts pods",
		Fix:   "read the existing value with `lookup`, and generate a value only if none exists; or require the value in the schema; or read it from a Secret with `valuesFrom`",
	}
	ruleTime = Rule{
		Name: "time-dependent", Severity: Warning,
		Finds: "`now` or `ago`",
		Why:   "every edit of a custom resource changes or restarts the object",
		Fix:   "remove the time: objects have a creationTimestamp, and revisions record when they were deployed",
	}
	ruleRevision = Rule{
		Name: "release-revision", Severity: Warning,
		Finds: "`.Release.Revision`",
		Why:   "every edit, retry and rollback changes or restarts the object",
		Fix:   "use a checksum of the relevant content, such as `sha256sum` of the configuration",
	}
	rulePhase = Rule{
		Name: "release-phase", Severity: Warning,
		Finds: "`.Release.IsInstall` or `.Release.IsUpgrade`",
		Why:   "the first upgrade deletes objects that are rendered only for the install",
		Fix:   "use a hook (`helm.sh/hook: pre-install`) for one-time tasks",
	}
	ruleLookup = Rule{
		Name: "lookup", Severity: Info,
		Finds: "`lookup`",
		Why:   "the operator needs permission to read these objects, and does not watch them: see `reconcilePeriod`",
		Fix:   "nothing, if the template reads back a value that it generated once; otherwise use the spec or `valuesFrom`",
	}
	ruleLookupAway = Rule{
		Name: "lookup-elsewhere", Severity: Warning,
		Finds: "`lookup` in another or a computed namespace; error if `allow` forbids it",
		Why:   "authors of specs could read objects in other namespaces; by default, the release fails with NotAllowed",
		Fix:   "pass `.Release.Namespace` as the namespace; or set `allow.lookup: all` in the watches entry, if no value of the spec reaches the call",
	}
	rulePasswords = Rule{
		Name: "upgrade-needs-password", Severity: Warning,
		Finds: "a chart that generates passwords and rejects an upgrade without them, as many Bitnami charts do (`PASSWORDS ERROR`)",
		Why:   "every edit of a custom resource fails with RenderFailed",
		Fix:   "add the `valuesFrom` that the finding prints to the watches entry; see docs/get-started/your-own-chart.md#generated-passwords",
	}
	ruleNoFile = Rule{
		Name: "missing-file", Severity: Warning,
		Finds: "`.Files.Get` of a file that is not in the chart",
		Why:   "Helm renders an empty string without an error",
		Fix:   "add the file, or remove it from `.helmignore`",
	}
	ruleSeparator = Rule{
		Name: "no-separator", Severity: Error,
		Finds: "a loop that renders objects without `---` between them",
		Why:   "several objects become one document: Helm installs the last one and loses the others, and the operator refuses to render them",
		Fix:   "begin the loop's body with a line `---`",
	}
	ruleIdentity = Rule{
		Name: "object-identity", Severity: Error,
		Finds: "an object that is rendered twice, or has no `metadata.name`",
		Why:   "Helm cannot upgrade such objects, and the operator refuses them",
		Fix:   "give each object a name of its own; `generateName` is not supported",
	}
	ruleName = Rule{
		Name: "name-ignores-release", Severity: Error,
		Finds: "an object with the same name in every release",
		Why:   "only one custom resource per namespace can be installed (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Name }}`",
	}
	ruleClusterName = Rule{
		Name: "cluster-name-shared", Severity: Error,
		Finds: "an object that is cluster-scoped or in a fixed namespace, with the same name in every release",
		Why:   "only one custom resource per cluster can be installed (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`; or remove the object from the chart, if all releases share it",
	}
	ruleClusterPlace = Rule{
		Name: "cluster-name-ignores-namespace", Severity: Warning,
		Finds: "an object that is cluster-scoped or in a fixed namespace, and whose name lacks the release namespace",
		Why:   "custom resources with the same name in different namespaces conflict (reason ObjectConflict)",
		Fix:   "start the name with `{{ .Release.Namespace }}-{{ .Release.Name }}`",
	}
	ruleNotAllowed = Rule{
		Name: "not-allowed", Severity: Error,
		Finds: "an object that `allow` forbids; info without a watches entry, or if only some values render the object",
		Why:   "the operator rejects the release before it writes anything (reason NotAllowed)",
		Fix:   "add the setting in the message to the entry, if the chart needs the object",
	}
	ruleNoAllow = Rule{
		Name: "allow-missing", Severity: Warning,
		Finds: "an entry of the operator-sdk without `allow`, and the block that the chart needs with its defaults and examples",
		Why:   "values can make the chart create objects in any namespace and of any cluster-scoped kind, and read everything that the operator can read",
		Fix:   "add the block in the message to the entry, without access that the chart should not have",
	}
	ruleCRD = Rule{
		Name: "crd-without-keep", Severity: Error,
		Finds: "a CustomResourceDefinition in `templates/` without `helm.sh/resource-policy: keep`",
		Why:   "deleting one custom resource deletes the CRD, and all resources of its kind in the cluster",
		Fix:   "move the CRD to `crds/`, whose CRDs are never deleted; or annotate it with `helm.sh/resource-policy: keep`",
	}
	ruleSize = Rule{
		Name: "release-size", Severity: Warning,
		Finds: "a release record that exceeds 512 KiB; error if it does not fit into a Secret (1 MiB)",
		Why:   "the operator rejects a record that does not fit (reason ReleaseTooLarge)",
		Fix:   "remove large files from the chart, for example into the image",
	}
	ruleHookPolicy = Rule{
		Name: "hook-delete-policy", Severity: Warning,
		Finds: "a hook without `helm.sh/hook-delete-policy`",
		Why:   "its Job and pods remain until the hook runs again or the release is uninstalled",
		Fix:   "annotate the hook with `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded`",
	}
	ruleHookLeft = Rule{
		Name: "hook-left-behind", Severity: Warning,
		Finds: "a hook whose delete policies lack `before-hook-creation`",
		Why:   "after a failed or interrupted hook, every retry fails because the object exists",
		Fix:   "add `before-hook-creation` to `helm.sh/hook-delete-policy`",
	}
	ruleDeleteHook = Rule{
		Name: "delete-hook", Severity: Info,
		Finds: "a `pre-delete` or `post-delete` hook",
		Why:   "a deleted custom resource and its namespace remain until the hook has succeeded",
		Fix:   "nothing, if the hook always ends; users can skip the hook with the annotation `chartwright.dev/uninstall-disable-hooks`",
	}
	rulePermissions = Rule{
		Name: "permissions-unresolved", Severity: Warning,
		Finds: "a template with an object whose kind cannot be determined",
		Why:   "`chartwright rbac` cannot derive the permissions, and a release with the object fails",
		Fix:   "write apiVersion and kind as literals; or add the permissions to the watches entry, see docs/reference/rbac.md",
	}
	ruleUnknown = Rule{
		Name: "unknown-rule", Severity: Warning,
		Finds: "an ignore comment or annotation for a rule that does not exist",
		Why:   "it has no effect",
		Fix:   "correct the name: `chartwright lint --rules` lists the rules",
	}
)
