package chartkind

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// FlagAllow is the flag that limits what ChartKinds may allow to their charts.
const FlagAllow = "--chart-kinds-allow"

// ParseAllow reads the value of FlagAllow: an allow block of a watches file, in YAML. An
// empty text allows nothing beyond the namespace of the release.
func ParseAllow(text string) (watches.Allow, error) {
	if strings.TrimSpace(text) == "" {
		return watches.Allow{}, nil
	}
	entry := "group: example.com\nversion: v1\nkind: A\nallow:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
	parsed, err := watches.ParseKind(FlagAllow, []byte(entry))
	if problems, ok := errors.AsType[watches.LineErrors](err); ok {
		return watches.Allow{}, fmt.Errorf("%s %q: %s: expected keys of allow, for example {clusterScoped: [ClusterRole.rbac.authorization.k8s.io]}", FlagAllow, text, problems[0].Message)
	}
	return parsed.Allow, err
}

// reservedGroups are groups that no ChartKind adds kinds to, including the groups below
// them.
var reservedGroups = []string{"k8s.io", "kubernetes.io", api.Domain}

// CheckGroup reports a group that belongs to Kubernetes or to Chartwright.
func CheckGroup(group string) error {
	for _, reserved := range reservedGroups {
		if group == reserved || strings.HasSuffix(group, "."+reserved) {
			return fmt.Errorf("spec.names.group: %s is reserved: expected a group of a domain of your own, for example apps.example.com", group)
		}
	}
	if !strings.Contains(group, ".") {
		return fmt.Errorf("spec.names.group: %q: expected a domain with a dot, for example apps.example.com", group)
	}
	return nil
}

// lookupRanks order the values of lookup.
var lookupRanks = map[watches.LookupScope]int{watches.LookupNone: 0, watches.LookupOwn: 1, watches.LookupAll: 2}

// CheckAllowed reports the fields of an entry that exceed what the operator's flag allows
// to ChartKinds.
func CheckAllowed(limit watches.Allow, entry watches.Watch) error {
	var errs []error
	refuse := func(refused bool, path, what, key string) {
		if refused {
			errs = append(errs, fmt.Errorf("spec.%s: %s: the flag %s of the operator lacks %s", path, what, FlagAllow, key))
		}
	}
	asked := entry.Allow
	refuse(asked.OtherNamespaces && !limit.OtherNamespaces, "allow.otherNamespaces", "resources in other namespaces are not allowed", "otherNamespaces: true")
	for _, kind := range asked.ClusterScoped {
		refuse(!slices.Contains(limit.ClusterScoped, kind), "allow.clusterScoped", kind+" is not allowed", "clusterScoped: ["+kind+"]")
	}
	refuse(lookupRanks[asked.LookupScope()] > lookupRanks[limit.LookupScope()], "allow.lookup", string(asked.LookupScope())+" is not allowed", "lookup: "+string(asked.LookupScope()))
	refuse(asked.LookupInValues && !limit.LookupInValues, "allow.lookupInValues", "lookup in values is not allowed", "lookupInValues: true")
	refuse(asked.TakeOwnership == watches.TakeOwnershipOnRequest && limit.TakeOwnership != watches.TakeOwnershipOnRequest,
		"allow.takeOwnership", "taking over resources is not allowed", "takeOwnership: onRequest")
	for _, namespace := range asked.SystemNamespaces {
		refuse(!slices.Contains(limit.SystemNamespaces, namespace), "allow.systemNamespaces", "releases in the namespace "+namespace+" are not allowed", "systemNamespaces: ["+namespace+"]")
	}
	refuse(entry.ReleaseNamespace != "" && !limit.OtherNamespaces, "releaseNamespace", "releases in other namespaces are not allowed", "otherNamespaces: true")
	refuse(asked.DependsOn.OtherNamespaces && !limit.DependsOn.OtherNamespaces, "allow.dependsOn.otherNamespaces",
		"dependencies in other namespaces are not allowed", "dependsOn: {otherNamespaces: true}")
	for path, text := range templatesOf(entry) {
		if readsEnvironment.MatchString(text) {
			errs = append(errs, fmt.Errorf("spec.%s: a template of a ChartKind may not read the environment or the network of the operator: remove env, expandenv and getHostByName", path))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return joined(errs)
}

// definitions is the kind of the objects in the folder crds/ of a chart.
var definitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// CheckChart reports a chart with CRDs in its folder crds/ that the operator's flag does
// not allow to ChartKinds.
func CheckChart(limit watches.Allow, entry watches.Watch, loaded *chart.Chart) error {
	if entry.CRDs == watches.CRDsSkip || slices.Contains(limit.ClusterScoped, definitions.String()) {
		return nil
	}
	found, err := loaded.CRDs()
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("spec.crds: the chart has %d CRDs in crds/, such as %s, and the flag %s of the operator lacks clusterScoped: [%s]: set spec.crds: Skip, and install the CRDs yourself",
		len(found), found[0].GetName(), FlagAllow, definitions)
}

// readsEnvironment matches the functions of templates that read something outside of the
// custom resource.
var readsEnvironment = regexp.MustCompile(`(?s)\{\{(?:.*[^.\w"$])?(?:env|expandenv|getHostByName)\b`)

// templatesOf returns the templates of an entry by their paths.
func templatesOf(entry watches.Watch) map[string]string {
	texts := map[string]string{
		"releaseNamespace": entry.ReleaseNamespace, "createNamespace": string(entry.CreateNamespace), "serviceAccountName": entry.ServiceAccountName,
	}
	for i, from := range entry.ValuesFrom {
		texts[fmt.Sprintf("valuesFrom[%d].name", i)] = from.Name
	}
	for i, observe := range entry.Observe {
		for key, value := range maps.All(observe.Selector.MatchLabels) {
			texts[fmt.Sprintf("observe[%d].selector.matchLabels[%s]", i, key)] = value
		}
	}
	for i, dependency := range entry.DependsOn {
		for path, text := range dependency.Templates() {
			texts[fmt.Sprintf("dependsOn[%d].%s", i, path)] = text
		}
	}
	maps.DeleteFunc(texts, func(_, text string) bool { return !watches.IsTemplate(text) })
	return texts
}

// joined returns the errors as one error on one line, nil without errors.
func joined(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
