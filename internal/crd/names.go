package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// namesOf returns the names of a kind.
func namesOf(kind string) apiextensionsv1.CustomResourceDefinitionNames {
	singular := strings.ToLower(kind)
	return apiextensionsv1.CustomResourceDefinitionNames{
		Kind:     kind,
		ListKind: kind + "List",
		Singular: singular,
		Plural:   plural(singular),
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
