package scaffold

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/watches"
)

// kindName is what API servers and people expect of the name of a kind.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// complete fills in what follows from the chart and from the watches file, and
// refuses what no kind can have.
func (a *Add) complete(file *watchesFile, chart string) error {
	if a.Kind == "" {
		a.Kind = camelCase(chart)
	}
	if !kindName.MatchString(a.Kind) {
		return fmt.Errorf("the kind %q: expected letters and digits, with a capital first: choose one by --kind", a.Kind)
	}
	if len(validation.IsDNS1123Subdomain(a.Group)) > 0 && a.Group != "" {
		return fmt.Errorf("--group %q: want a DNS name of lower-case letters, digits, dashes and dots, such as apps.example.com", a.Group)
	}
	if a.Group != "" && !strings.Contains(a.Group, ".") {
		of := domain(file.text)
		if of == "" {
			return fmt.Errorf("--group %s: want a whole domain, such as %[1]s.example.com: %s has no line \"# domain: …\" to complete it with", a.Group, file.name)
		}
		a.Group += "." + of
	}
	if a.Group == "" {
		if err := a.find(file); err != nil {
			return err
		}
	}
	if problems := validation.IsDNS1123Subdomain(a.Group); len(problems) > 0 {
		return fmt.Errorf("--group %q: %s", a.Group, strings.Join(problems, "; "))
	}
	if a.Group == "k8s.io" || strings.HasSuffix(a.Group, ".k8s.io") || strings.HasSuffix(a.Group, ".kubernetes.io") {
		return fmt.Errorf("--group %s belongs to Kubernetes itself: choose one of a domain of yours", a.Group)
	}
	if at := slices.IndexFunc(file.entries, func(w watches.Watch) bool { return w.Group == a.Group && w.Kind == a.Kind }); at >= 0 && a.Version == "" {
		a.Version = file.entries[at].Version
	}
	if a.Version == "" {
		return errors.New("say by --version which version of the kind this is, for example v1alpha1")
	}
	if problems := validation.IsDNS1035Label(a.Version); len(problems) > 0 {
		return fmt.Errorf("--version %q: %s", a.Version, strings.Join(problems, "; "))
	}
	if !slices.Contains(scopes, a.Scope) {
		return fmt.Errorf("--scope %s: expected one of %s", a.Scope, strings.Join(scopes[1:], ", "))
	}
	return nil
}

// find takes the group from the entry of the kind, for a chart that is added
// again.
func (a *Add) find(file *watchesFile) error {
	var groups []string
	for _, w := range file.entries {
		if w.Kind == a.Kind {
			groups = append(groups, w.Group)
		}
	}
	switch len(groups) {
	case 1:
		a.Group = groups[0]
		return nil
	case 0:
		return fmt.Errorf("say by --group which API group the kind %s belongs to, for example shop.example.com", a.Kind)
	default:
		return fmt.Errorf("there are kinds %s in the groups %s: say by --group which is meant", a.Kind, strings.Join(groups, ", "))
	}
}

// camelCase makes a kind of a chart's name: web-shop becomes WebShop.
func camelCase(name string) string {
	var kind strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return kind.String()
}
