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

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// watchesFindings returns the problems of the watches file.
func (p *Project) watchesFindings(f *finder) {
	for _, problem := range p.problems {
		message, _, _ := strings.Cut(problem.Message, ": expected one of")
		found := f.addf(Breaks, at(problem.File, problem.Line), "%s", message)
		found.Do = "the operator does not start before that is mended"
		switch {
		case strings.HasPrefix(message, "unknown key"):
			found.Do = "remove the key: the operator-sdk passes over what it does not know, so that it was never in force"
		case strings.Contains(message, "is bound twice"):
			found.Do = "make one entry of the two, with the other version among its versions; the CRD has the list"
		}
	}
	if len(p.kinds) > 0 {
		f.addf(Works, watchesFile, "%s can be loaded, with %s", Counted(len(p.kinds), "kind", "kinds"), Counted(len(p.kinds), "chart", "charts"))
	}
}

// entryFindings returns the findings about the keys of an entry.
func (p *Project) entryFindings(f *finder, kind catalog.Kind) error {
	where := at(watchesFile, kind.Line)
	if kind.Selector != nil {
		f.addf(Changes, where, "the selector counts. The operator-sdk since 1.34 passes over it where WATCH_NAMESPACE is empty, and serves resources without these labels, too").
			Do = "look for resources that lack the labels, which --live does, and label them"
	}
	if kind.ReconcilePeriod != nil {
		f.addf(Changes, where, "reconcilePeriod %s: every object is applied again that often. Nothing needs it to be repaired or upgraded, but a chart that uses lookup", kind.ReconcilePeriod.Duration).
			Do = "remove the key, unless the chart uses lookup"
	}
	if kind.DryRunOption != "" {
		f.addf(Changes, where, "dryRunOption has no effect: lookup always works, and no dry run is needed to know whether to upgrade")
	}
	if kind.WatchDependentResources != nil && !*kind.WatchDependentResources {
		f.addf(Works, where, "watchDependentResources: false: damaged objects are left as they are, as by drift.mode: Disabled")
	}
	f.overrides(where, kind)
	return nil
}

// overrides compares overrideValues as texts, which they are to the
// operator-sdk, with what they are here.
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
			more = "; each release gets one more revision"
		}
		f.addf(Changes, where, "overrideValues have types, as --set gives them, and were always texts: %s. A template that compares one with a text fails, and false, which was true as a text, is false%s", strings.Join(typed, "; "), more).
			Do = "look at what chartwright render prints for a resource of the kind"
	}
	slices.Sort(variables)
	if variables = slices.Compact(variables); len(variables) > 0 {
		f.addf(Works, where, "overrideValues are expanded from the environment (%s), which the manager's container has to have as before", strings.Join(variables, ", "))
	}
	if len(typed) == 0 {
		f.addf(Works, where, "overrideValues are texts, as they were")
	}
}

// becomes tells of a value that is no text any more. What a variable holds may be
// a password, and reports get around.
func becomes(raw string, value any) string {
	if len(variablesOf(raw)) == 0 {
		return fmt.Sprintf("%q becomes %s", raw, show(value))
	}
	kinds := map[reflect.Kind]string{reflect.Bool: "true or false", reflect.Invalid: "null", reflect.Slice: "a list"}
	return fmt.Sprintf("%q becomes %s", raw, cmp.Or(kinds[reflect.ValueOf(value).Kind()], "a number"))
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// variablesOf returns the names of variables in a text.
func variablesOf(text string) []string {
	found := variable.FindAllStringSubmatch(text, -1)
	names := make([]string, 0, len(found))
	for _, match := range found {
		names = append(names, match[1]+match[2])
	}
	return names
}

// reportedElsewhere are rules of lint that other findings report better: those
// about the allow block and the role.
var reportedElsewhere = map[string]bool{"not-allowed": true, "lookup-elsewhere": true, "rights-unresolved": true, "schema-missing": true}

// chartFindings returns the problems of the chart itself.
func (p *Project) chartFindings(f *finder, kind catalog.Kind) error {
	found, err := lint.Run(lint.Target{Path: path.Clean(kind.Watch.Chart), Kind: kind})
	if err != nil {
		return err
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
		f.addf(ToDo, path.Clean(kind.Watch.Chart), "%s of chartwright lint", Counted(warnings, "warning", "warnings")).
			Do = "look at them before the move, or after it: chartwright lint"
	}
	if kind.Chart.Features.Lookup && kind.ReconcilePeriod == nil {
		found := f.addf(Changes, path.Clean(kind.Watch.Chart), "the chart uses lookup: what it reads was looked at with every reconcile, each minute, and is from now on when the resource is edited, or every object is applied again")
		found.Do, found.Lines = "say how often to look, if what is read changes", "  reconcilePeriod: 10m\n"
	}
	return nil
}

// allowFindings tells what the chart has to be allowed, with the values of the
// samples and others.
func (p *Project) allowFindings(f *finder, kind catalog.Kind, given []map[string]any) error {
	need, notes, err := scaffold.Allow(kind, slices.Concat(p.sampleValues(kind), given)...)
	if err != nil {
		// Reported by definitionFindings.
		return nil //nolint:nilerr // see above
	}
	where := at(watchesFile, kind.Line)
	lines, err := scaffold.AllowLines(need)
	if err != nil {
		return err
	}
	switch missing := scaffold.Lacks(kind.Allow, need); {
	case len(missing) > 0:
		found := f.addf(ToDo, where, "the chart goes beyond the release's namespace. An entry with none but the operator-sdk's keys allows that, with a warning at start; with any other key, what its allow block does not name is refused")
		found.Do, found.Lines = "add to the entry what the chart has business with", lines
	case lines == "":
		found := f.addf(Works, where, "the chart stays in the release's namespace. An entry with none but the operator-sdk's keys allows it to go anywhere, should values lead it there")
		found.Do, found.Lines = "have that refused", "  allow: {}\n"
	default:
		f.addf(Works, where, "the entry allows what the chart needs")
	}
	for _, note := range notes {
		f.addf(ToDo, where, "%s", note)
	}
	return nil
}

// roleFile is the file of the operator's role.
const roleFile = "config/rbac/role.yaml"

// roleFindings returns the permissions that the operator's role is missing.
func (p *Project) roleFindings(f *finder) {
	text, exists := p.files[roleFile]
	if !exists || len(p.kinds) == 0 {
		return
	}
	report, err := permissions.Derive(p.kinds, permissions.Options{})
	if err != nil {
		f.addf(Unknown, roleFile, "the rights that the charts need cannot be derived: %v", err).Do = "mend that first"
		return
	}
	have := rulesOf(text)
	var lines strings.Builder
	missing, whole := 0, 0
	for _, rule := range report.Rules {
		lack := permissions.Allowed(have, rule.PolicyRule)
		if len(lack) == 0 {
			whole++
		}
		for _, one := range lack {
			missing++
			lines.WriteString("- " + permissions.RuleText(one) + " # " + rule.Why + "\n")
		}
	}
	generate := "or have the whole role derived: chartwright rbac --output-file " + roleFile
	if missing > 0 {
		found := f.addf(ToDo, roleFile, "%s of the %d that the operator and the charts need are missing, or not whole", Counted(len(report.Rules)-whole, "rule", "rules"), len(report.Rules))
		found.Do, found.Lines = "add these rules; "+generate, lines.String()
	} else {
		f.addf(Works, roleFile, "it has all rights that the operator and the charts need").Do = generate + ", which has no wildcards"
	}
	for _, unresolved := range report.Unresolved {
		f.addf(ToDo, roleFile, "%s", unresolved).Do = "add the rule to the role, as today"
	}
}

// rulesOf returns the rules of all roles in a file.
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
