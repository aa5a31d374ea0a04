package watches

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/util/validation"
)

var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// CheckKind returns an error unless a kind follows the convention of Kubernetes.
func CheckKind(kind string) error {
	if !kindName.MatchString(kind) {
		return errors.New("want letters and digits, starting with an upper-case letter")
	}
	return nil
}

// CheckGroup returns an error unless the API server accepts an API group.
func CheckGroup(group string) error {
	if len(validation.IsDNS1123Subdomain(group)) > 0 {
		return errors.New("want a DNS name of lower-case letters, digits, dashes and dots, such as apps.example.com")
	}
	return nil
}

// CheckVersion returns an error unless the API server accepts the name of an API version.
func CheckVersion(version string) error {
	if len(validation.IsDNS1035Label(version)) > 0 {
		return errors.New("want a version such as v1, v1beta1 or v1alpha1")
	}
	return nil
}

// CheckName returns an error unless the API server accepts a plural, singular, short name
// or category of a kind.
func CheckName(name string) error {
	if len(validation.IsDNS1035Label(name)) > 0 {
		return errors.New("want lower-case letters, digits and dashes, starting with a letter")
	}
	return nil
}

// SingularName returns Singular or its default.
func (w Watch) SingularName() string { return cmp.Or(w.Singular, strings.ToLower(w.Kind)) }

// PluralName returns Plural or its default.
func (w Watch) PluralName() string { return cmp.Or(w.Plural, plural(w.SingularName())) }

// DefaultPlural returns the plural of a kind whose entry sets neither Plural nor Singular.
func DefaultPlural(kind string) string { return plural(strings.ToLower(kind)) }

// plural returns the plural by simple English rules. They must never change, because the
// plural is part of the name of the CRD. UnsafeGuessKindToResource of apimachinery handles
// neither "boxes" nor "gateways".
func plural(singular string) string {
	before, endsInY := strings.CutSuffix(singular, "y")
	switch {
	case endsInY && before != "" && !strings.ContainsAny(before[len(before)-1:], "aeiou"):
		return before + "ies"
	case sibilant.MatchString(singular):
		return singular + "es"
	default:
		return singular + "s"
	}
}

// sibilant matches words whose plural ends in -es.
var sibilant = regexp.MustCompile(`(s|x|z|ch|sh)$`)

// Names are the names of kinds in URLs of the API server and in kubectl. In
// each group, a name belongs to one kind: the API server does not serve a second CRD that
// has it.
type Names map[string]named

// named is the kind that has a name, and where it is defined.
type named struct {
	kind, what, file string
	line             int
}

// Add adds the names of an entry. It returns an error for each name that another entry
// of the same group has.
func (n Names) Add(w Watch) LineErrors {
	if w.Kind == "" {
		return nil
	}
	type name struct{ path, what, value string }
	names := []name{{"plural", "plural", w.PluralName()}, {"singular", "singular", w.SingularName()}}
	for i, short := range w.ShortNames {
		names = append(names, name{fmt.Sprintf("shortNames[%d]", i), "short name", short})
	}
	var problems LineErrors
	for _, one := range names {
		key := w.Group + "/" + one.value
		other, taken := n[key]
		switch {
		case !taken:
			n[key] = named{kind: w.Kind, what: one.what, file: w.File, line: w.Line}
		case other.kind == w.Kind:
			// Two names of one kind, or two entries of a kind, which are another error.
		case strings.EqualFold(other.kind, w.Kind):
			return LineErrors{w.ErrorAt("kind", "the kinds %s and %s (%s) differ only in case: use different names", w.Kind, other.kind, other.place(w))}
		default:
			problems = append(problems, w.ErrorAt(one.path, "the %s %s of %s is also the %s of %s (%s): in a group, the API server serves only one kind with a name: set another %s",
				one.what, one.value, w.Kind, other.what, other.kind, other.place(w), one.what))
		}
	}
	return problems
}

// place returns where the other entry begins.
func (n named) place(w Watch) string {
	if n.file == w.File {
		return fmt.Sprintf("line %d", n.line)
	}
	return fmt.Sprintf("%s:%d", n.file, n.line)
}

// similar returns the name that is most similar to a misspelled one, or an empty string if
// none is similar.
func similar(name string, names []string) string {
	best, ratio := "", 0.75
	for _, candidate := range names {
		matcher := difflib.NewMatcher(strings.Split(strings.ToLower(name), ""), strings.Split(strings.ToLower(candidate), ""))
		if r := matcher.Ratio(); r > ratio {
			best, ratio = candidate, r
		}
	}
	return best
}
