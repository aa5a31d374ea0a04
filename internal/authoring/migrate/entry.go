package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// watchesFindings adds the errors in the watches file.
func (p *Project) watchesFindings(f *finder) {
	for _, problem := range p.problems {
		message, _, _ := strings.Cut(problem.Message, ": expected one of")
		found := f.addf(Breaks, at(problem.File, problem.Line), "%s", message)
		found.Do = "correct it: the operator does not serve the kind with this error"
		switch {
		case strings.HasPrefix(message, "unknown key"):
			found.Do = "remove the key: the operator-sdk ignores unknown keys, so it never had an effect"
		case strings.Contains(message, "has two entries"):
			found.Do = "merge the two entries, and add the other version to versions"
		}
	}
	if len(p.kinds) > 0 {
		f.addf(Works, watchesFile, "%s can be loaded, with %s", api.Counted(len(p.kinds), "kind", "kinds"), api.Counted(len(p.kinds), "chart", "charts"))
	}
}

// entryFindings adds findings about the keys of an entry.
func (p *Project) entryFindings(f *finder, kind catalog.Kind) error {
	where := at(watchesFile, kind.Line)
	if kind.Selector != nil {
		f.addf(Changes, where, "the selector takes effect. Since 1.34, the operator-sdk ignores it if WATCH_NAMESPACE is empty, and reconciles custom resources without these labels too").
			Do = "find custom resources without the labels by --live, and label them"
	}
	if kind.ReconcilePeriod != nil {
		f.addf(Changes, where, "reconcilePeriod %s: Chartwright applies every object again at this interval. Only charts that use lookup need it: drift correction and upgrades do not", kind.ReconcilePeriod.Duration).
			Do = "remove the key, unless the chart uses lookup"
	}
	if kind.DryRunOption != "" {
		f.addf(Changes, where, "dryRunOption has no effect: lookup always works, and Chartwright detects changes without a dry run")
	}
	if kind.WatchDependentResources != nil && !*kind.WatchDependentResources {
		f.addf(Works, where, "watchDependentResources: false disables drift correction, like drift.mode: Disabled")
	}
	f.overrides(where, kind)
	return nil
}

// overrides adds findings about overrideValues, which are strings for the operator-sdk
// and typed for Chartwright.
func (f *finder) overrides(where string, kind catalog.Kind) {
	if len(kind.OverrideValues) == 0 {
		return
	}
	var typed, variables []string
	revision := false
	for _, path := range slices.Sorted(maps.Keys(kind.OverrideValues)) {
		text, err := values.Expand(kind.OverrideValues[path])
		if err != nil {
			// Reported with the problems of the file.
			continue
		}
		variables = append(variables, variablesOf(kind.OverrideValues[path])...)
		value, found, _ := unstructured.NestedFieldNoCopy(kind.Overrides, strings.Split(path, ".")...)
		if found && !reflect.DeepEqual(value, text) {
			typed = append(typed, path+": "+becomes(kind.OverrideValues[path], value))
			revision = revision || !values.Prints(value, text)
		}
	}
	if len(typed) > 0 {
		more := ""
		if revision {
			more = "; each release gets a new revision"
		}
		f.addf(Changes, where, "overrideValues have types like values of --set; until now they were strings: %s. A template that compares such a value with a string fails; the string \"false\", which is true in a condition, becomes false%s", strings.Join(typed, "; "), more).
			Do = "check the output of chartwright render for a custom resource of the kind"
	}
	slices.Sort(variables)
	if variables = slices.Compact(variables); len(variables) > 0 {
		f.addf(Works, where, "overrideValues use environment variables (%s): set them in the manager's container as before", strings.Join(variables, ", "))
	}
	if len(typed) == 0 {
		f.addf(Works, where, "overrideValues are strings as before")
	}
}

// becomes describes a value that is no longer a string. It does not print values of
// environment variables, which may be passwords.
func becomes(raw string, value any) string {
	if len(variablesOf(raw)) == 0 {
		return fmt.Sprintf("%q becomes %s", raw, show(value))
	}
	kinds := map[reflect.Kind]string{reflect.Bool: "a boolean", reflect.Invalid: "null", reflect.Slice: "a list"}
	return fmt.Sprintf("%q becomes %s", raw, cmp.Or(kinds[reflect.ValueOf(value).Kind()], "a number"))
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// variablesOf returns the names of environment variables in a text.
func variablesOf(text string) []string {
	found := variable.FindAllStringSubmatch(text, -1)
	names := make([]string, 0, len(found))
	for _, match := range found {
		names = append(names, match[1]+match[2])
	}
	return names
}

// reportedElsewhere lists lint rules whose problems other findings report in more
// detail.
var reportedElsewhere = map[string]bool{"not-allowed": true, "lookup-elsewhere": true, "allow-missing": true, "permissions-unresolved": true, "schema-missing": true}

// chartFindings adds the lint findings and other problems of the chart.
func (p *Project) chartFindings(f *finder, kind catalog.Kind) error {
	found, err := lint.Run(lint.Target{Path: path.Clean(kind.Watch.Chart), Kind: kind}, nil)
	if err != nil {
		f.addf(Unknown, path.Clean(kind.Watch.Chart), "the chart cannot be checked: %v", err).Do = "fix this first"
		return nil
	}
	warnings := 0
	for _, finding := range found {
		switch {
		case reportedElsewhere[finding.Rule]:
		case finding.Severity == lint.Error:
			f.addf(ToDo, at(finding.File, finding.Line), "%s (%s): %s", finding.Message, finding.Rule, finding.Why).Do = finding.Fix
		case finding.Severity == lint.Warning:
			warnings++
		}
	}
	if warnings > 0 {
		f.addf(ToDo, path.Clean(kind.Watch.Chart), "%s of chartwright lint", api.Counted(warnings, "warning", "warnings")).
			Do = "run chartwright lint before or after the migration"
	}
	if kind.Chart.Features.Lookup && kind.ReconcilePeriod == nil {
		found := f.addf(Changes, path.Clean(kind.Watch.Chart), "the chart uses lookup: until now it read the objects every minute; Chartwright reads them when the custom resource is edited, and every reconcilePeriod")
		found.Do, found.Lines = "set reconcilePeriod if these objects can change", "  reconcilePeriod: 10m\n"
	}
	return nil
}

// allowFindings compares the allow block of the entry with what the chart needs, for the
// values of the samples and additional values.
func (p *Project) allowFindings(f *finder, kind catalog.Kind, given []map[string]any) error {
	need, err := scaffold.Allow(kind, nil, slices.Concat(p.sampleValues(kind), given)...)
	if err != nil {
		// Reported by definitionFindings.
		return nil //nolint:nilerr // see above
	}
	where := at(watchesFile, kind.Line)
	lines, err := scaffold.AllowLines(need.Allow)
	if err != nil {
		return err
	}
	switch missing := kind.Allow.Missing(need.Allow); {
	case len(missing) > 0:
		found := f.addf(ToDo, where, "the chart needs access beyond the release's namespace. An entry that has only keys of the operator-sdk allows everything, with a message in the log at startup; with any other key, Chartwright rejects everything that is not in the allow block")
		found.Do, found.Lines = "add this block to the entry, without access that the chart should not have", lines
	case lines == "" && kind.Allow.Everything:
		found := f.addf(Works, where, "the chart only needs the release's namespace. An entry that has only keys of the operator-sdk allows everything, which matters if values change the namespace of objects")
		found.Do, found.Lines = "allow only the release's namespace", "  allow: {}\n"
	default:
		f.addf(Works, where, "the entry allows what the chart needs")
	}
	for _, note := range need.Notes {
		f.addf(ToDo, where, "%s", note)
	}
	return nil
}

// roleFile is the file of the operator's role.
const roleFile = "config/rbac/role.yaml"

// roleFindings adds the permissions that are missing in the operator's role.
func (p *Project) roleFindings(f *finder) {
	text, exists := p.files[roleFile]
	if !exists || len(p.kinds) == 0 {
		return
	}
	report, err := permissions.Derive(p.kinds, permissions.Options{})
	if err != nil {
		f.addf(Unknown, roleFile, "the permissions that the charts need cannot be derived: %v", err).Do = "fix this first"
		return
	}
	have := rulesOf(text)
	var lines strings.Builder
	missing, whole := 0, 0
	for _, rule := range report.Rules {
		missingRules := permissions.Allowed(have, rule.PolicyRule)
		if len(missingRules) == 0 {
			whole++
		}
		for _, one := range missingRules {
			missing++
			lines.WriteString("- " + permissions.RuleText(one) + " # " + rule.Why + "\n")
		}
	}
	generate := "or generate the whole role: chartwright rbac --output-file " + roleFile
	if missing > 0 {
		found := f.addf(ToDo, roleFile, "%s of the %d that the operator and the charts need are missing or incomplete", api.Counted(len(report.Rules)-whole, "rule", "rules"), len(report.Rules))
		found.Do, found.Lines = "add these rules; "+generate, lines.String()
	} else {
		f.addf(Works, roleFile, "the role has all permissions that the operator and the charts need").Do = "keep it, " + generate + " (without wildcards)"
	}
	for _, unresolved := range report.Unresolved {
		f.addf(ToDo, roleFile, "%s", unresolved).Do = "add the rule to the role"
	}
}

// rulesOf returns the rules of all Roles and ClusterRoles in a file.
func rulesOf(text string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(text, "\n---") {
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &role) == nil && strings.HasSuffix(role.Kind, "Role") {
			rules = append(rules, role.Rules...)
		}
	}
	return rules
}
