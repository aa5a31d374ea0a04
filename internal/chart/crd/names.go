package crd

import (
	"cmp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// Name returns the name of the definition of a kind.
func Name(kind catalog.Kind) string { return namesOf(kind.Watch).Plural + "." + kind.Group }

// namesOf returns the names of a kind: those of its watches entry or, where it
// has none, what English makes of the kind.
func namesOf(entry watches.Watch) apiextensionsv1.CustomResourceDefinitionNames {
	singular := cmp.Or(entry.Singular, strings.ToLower(entry.Kind))
	return apiextensionsv1.CustomResourceDefinitionNames{
		Kind:       entry.Kind,
		ListKind:   entry.Kind + "List",
		Singular:   singular,
		Plural:     cmp.Or(entry.Plural, plural(singular)),
		ShortNames: entry.ShortNames,
		Categories: entry.Categories,
	}
}

// plural returns the plural by the usual English rules. It goes further than
// apimachinery's UnsafeGuessKindToResource, which knows neither "boxes" nor
// "gateways", and says what the operator-sdk's tools say.
func plural(singular string) string {
	before, endsInY := strings.CutSuffix(singular, "y")
	switch {
	case endsInY && before != "" && !strings.ContainsAny(before[len(before)-1:], "aeiou"):
		return before + "ies"
	case hasSuffix(singular, "s", "x", "z", "ch", "sh"):
		return singular + "es"
	default:
		return singular + "s"
	}
}

func hasSuffix(text string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(text, suffix) {
			return true
		}
	}
	return false
}
