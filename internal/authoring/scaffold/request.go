package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// scopes are the valid values of --scope.
var scopes = []string{"", string(watches.ScopeNamespaced), string(watches.ScopeCluster)}

// complete sets the defaults from the chart and the watches file, and validates the
// request. The domain is that of the project.
func (a *Add) complete(file *watchesFile, domain, chart string) error {
	if a.Kind == "" {
		a.Kind = catalog.KindName(chart)
	}
	if err := watches.CheckKind(a.Kind); err != nil {
		return fmt.Errorf("kind %q: %w: set --kind", a.Kind, err)
	}
	if err := watches.CheckGroup(a.Group); err != nil && a.Group != "" {
		return fmt.Errorf("--group %q: %w", a.Group, err)
	}
	if a.Group != "" && !strings.Contains(a.Group, ".") {
		if domain == "" {
			return fmt.Errorf("--group %s: want a full domain, such as %[1]s.example.com, or set the key domain in the file %s of the project", a.Group, settingsFile)
		}
		a.Group += "." + domain
	}
	if a.Group == "" {
		if err := a.defaultGroup(file, domain); err != nil {
			return err
		}
	}
	if err := watches.CheckGroup(a.Group); err != nil {
		return fmt.Errorf("--group %q: %w", a.Group, err)
	}
	if a.Group == "k8s.io" || strings.HasSuffix(a.Group, ".k8s.io") || strings.HasSuffix(a.Group, ".kubernetes.io") {
		return fmt.Errorf("--group %s: the domain belongs to Kubernetes: use a domain of your own", a.Group)
	}
	have := watches.Watch{}
	if at := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind}); at >= 0 {
		have = file.entries[at]
		a.Version = cmp.Or(a.Version, have.Version)
	} else {
		a.Plural = cmp.Or(a.Plural, newPlural(a.Kind))
	}
	a.Version = cmp.Or(a.Version, defaultVersion)
	if err := watches.CheckVersion(a.Version); err != nil {
		return fmt.Errorf("--version %q: %w", a.Version, err)
	}
	return a.checkNames(have)
}

// checkNames validates the names of the kind and its scope.
func (a *Add) checkNames(have watches.Watch) error {
	plural := []string{a.Plural}
	if a.Plural == "" {
		plural = nil
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--plural", plural}, {"--short-name", a.ShortNames}, {"--category", a.Categories}} {
		for _, name := range list.names {
			if err := watches.CheckName(name); err != nil {
				return fmt.Errorf("%s %q: %w", list.flag, name, err)
			}
		}
	}
	if !slices.Contains(scopes, a.Scope) {
		return fmt.Errorf("--scope %s: want one of %s", a.Scope, strings.Join(scopes[1:], ", "))
	}
	if a.Scope == string(watches.ScopeCluster) && a.ReleaseNamespace == "" && have.ReleaseNamespace == "" {
		return errors.New("--scope Cluster: set --release-namespace, for example to \"{{ .spec.targetNamespace }}\"")
	}
	return nil
}

// defaultVersion is the version of a new kind, unless the user sets another.
const defaultVersion = "v1alpha1"

// defaultGroup sets the group: that of the kind if it exists, else the domain of the
// project, else the group that all other kinds have.
func (a *Add) defaultGroup(file *watchesFile, domain string) error {
	var groups, all []string
	for _, w := range file.entries {
		if w.Kind == a.Kind {
			groups = append(groups, w.Group)
		}
		all = append(all, w.Group)
	}
	all = slices.Compact(all)
	switch {
	case len(groups) == 1:
		a.Group = groups[0]
	case len(groups) > 1:
		return fmt.Errorf("the groups %s have a kind %s: set --group to one of them", strings.Join(groups, ", "), a.Kind)
	case domain != "":
		a.Group = domain
	case len(all) == 1:
		a.Group = all[0]
	default:
		return fmt.Errorf("no API group for the kind %s: set --group, for example to shop.example.com", a.Kind)
	}
	return nil
}

// newPlural returns the plural of a new kind, as kubebuilder forms it. It can differ from
// the default of a watches entry, which must not change for existing kinds.
func newPlural(kind string) string { return flect.Pluralize(strings.ToLower(kind)) }
