package compat_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/compat"
)

// definition returns a CRD of one version with a schema of spec in YAML.
func definition(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(spec), &schema); err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	root := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": schema}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group = "example.com"
	crd.Spec.Scope = apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Box", ListKind: "BoxList", Plural: "boxes", Singular: "box", ShortNames: []string{"bx"}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", &root)}
	return crd
}

func version(name string, root *apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
	}
}

// told writes changes one a line, as "Class path: message", with "+" before
// those that break nothing.
func told(changes []compat.Change) string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = string(c.Class) + " " + c.String()
		if !c.Breaking {
			lines[i] = "+" + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

func TestSchemas(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":                {"{type: string}", "{type: string}", nil},
		"a description":          {"{type: string}", "{type: string, description: A word, title: Word}", nil},
		"another type":           {"{type: string}", "{type: integer}", []string{"TypeChanged spec: type string becomes integer"}},
		"a wider type":           {"{type: integer}", "{type: number}", []string{"+Widened spec: type integer becomes number"}},
		"a narrower type":        {"{type: number}", "{type: integer}", []string{"TypeChanged spec: type number becomes integer"}},
		"text that may be both":  {"{type: string}", "{x-kubernetes-int-or-string: true}", []string{"+Widened spec: type string becomes integer or string"}},
		"both that may be text":  {"{x-kubernetes-int-or-string: true}", "{type: string}", []string{"TypeChanged spec: type integer or string becomes string"}},
		"any type":               {"{type: string}", "{x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec: type string becomes any"}},
		"any type no more":       {"{x-kubernetes-preserve-unknown-fields: true}", "{type: string}", []string{"TypeChanged spec: type any becomes string"}},
		"int-or-string in full":  {"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", nil},
		"int-or-string, pattern": {"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: a}]}", []string{"ValidationAdded spec: allOf has a new condition"}},
		"null no more":           {"{type: string, nullable: true}", "{type: string}", []string{"NullableRemoved spec: null was possible"}},
		"null":                   {"{type: string}", "{type: string, nullable: true}", nil},

		"an enum":                      {"{type: string}", "{type: string, enum: [a, b]}", []string{`EnumNarrowed spec: nothing but "a", "b" is possible`}},
		"an enum no more":              {"{type: string, enum: [a]}", "{type: string}", []string{`+Widened spec: more values than "a" are possible`}},
		"another enum":                 {"{type: string, enum: [a, b]}", "{type: string, enum: [b, c]}", []string{`EnumNarrowed spec: "a" is no longer possible`, `+Widened spec: "c" is possible, too`}},
		"an enum of null":              {"{type: string, nullable: true, allOf: [{enum: [a]}]}", "{type: string, nullable: true, allOf: [{enum: [a, b]}]}", nil},
		"an enum of null that narrows": {"{type: string, nullable: true, allOf: [{enum: [a, b]}]}", "{type: string, nullable: true, allOf: [{enum: [a]}]}", []string{`EnumNarrowed spec: "b" is no longer possible`}},
		"an enum that refuses null":    {"{type: string, nullable: true, allOf: [{enum: [a]}]}", "{type: string, enum: [a]}", []string{`EnumNarrowed spec: nothing but "a" is possible`}},

		"a higher minimum":             {"{type: integer, minimum: 1}", "{type: integer, minimum: 2}", []string{"RangeNarrowed spec: minimum 1 becomes 2"}},
		"a lower minimum":              {"{type: integer, minimum: 1}", "{type: integer, minimum: 0}", []string{"+Widened spec: minimum 1 becomes 0"}},
		"no minimum":                   {"{type: integer, minimum: 1}", "{type: integer}", []string{"+Widened spec: minimum 1 becomes none"}},
		"an exclusive minimum":         {"{type: integer, minimum: 1}", "{type: integer, minimum: 1, exclusiveMinimum: true}", []string{"RangeNarrowed spec: minimum 1 becomes 1 (exclusive)"}},
		"a maximum":                    {"{type: integer}", "{type: integer, maximum: 0}", []string{"RangeNarrowed spec: maximum none becomes 0"}},
		"a lower maximum":              {"{type: number, maximum: 1.5}", "{type: number, maximum: 1}", []string{"RangeNarrowed spec: maximum 1.5 becomes 1"}},
		"multiples":                    {"{type: integer}", "{type: integer, multipleOf: 2}", []string{"RangeNarrowed spec: it has to be a multiple of 2"}},
		"fewer multiples":              {"{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 4}", []string{"RangeNarrowed spec: it has to be a multiple of 4"}},
		"more multiples":               {"{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}", nil},
		"no multiples":                 {"{type: integer, multipleOf: 4}", "{type: integer}", []string{"+Widened spec: it need not be a multiple of 4"}},
		"a minimum of texts":           {"{type: string}", "{x-kubernetes-int-or-string: true, minimum: 1}", []string{"+Widened spec: type string becomes integer or string"}},
		"a longer text":                {"{type: string}", "{type: string, minLength: 1}", []string{"LengthNarrowed spec: minLength 0 becomes 1"}},
		"a minLength of 0":             {"{type: string}", "{type: string, minLength: 0}", nil},
		"a shorter text":               {"{type: string, maxLength: 3}", "{type: string, maxLength: 2}", []string{"LengthNarrowed spec: maxLength 3 becomes 2"}},
		"a pattern":                    {"{type: string}", "{type: string, pattern: a}", []string{"PatternChanged spec: it has to match a"}},
		"another pattern":              {"{type: string, pattern: a}", "{type: string, pattern: b}", []string{"PatternChanged spec: it has to match b, not a"}},
		"no pattern":                   {"{type: string, pattern: a}", "{type: string}", []string{"+Widened spec: it need not match a"}},
		"a format":                     {"{type: string}", "{type: string, format: ipv4}", []string{"FormatAdded spec: format none becomes ipv4"}},
		"no format":                    {"{type: string, format: ipv4}", "{type: string}", []string{"+Widened spec: format ipv4 becomes none"}},
		"a wider format":               {"{type: integer, format: int32}", "{type: integer, format: int64}", []string{"+Widened spec: format int32 becomes int64"}},
		"a default":                    {"{type: string}", "{type: string, default: a}", []string{`+DefaultChanged spec: default none becomes "a"`}},
		"a rule":                       {"{type: object}", "{type: object, x-kubernetes-validations: [{rule: 'has(self.a)'}]}", []string{"ValidationAdded spec: there is a new rule: has(self.a)"}},
		"another message":              {"{type: object, x-kubernetes-validations: [{rule: a, message: b}]}", "{type: object, x-kubernetes-validations: [{rule: a, message: c}]}", nil},
		"a rule less":                  {"{type: object, x-kubernetes-validations: [{rule: a}]}", "{type: object}", nil},
		"a whole object":               {"{type: object}", "{type: object, x-kubernetes-embedded-resource: true}", []string{"ValidationAdded spec: it has to be a whole Kubernetes object"}},
		"more items":                   {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 1}", []string{"SizeNarrowed spec: minItems 0 becomes 1"}},
		"fewer items":                  {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 1}", []string{"SizeNarrowed spec: maxItems none becomes 1"}},
		"a set":                        {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", []string{"SizeNarrowed spec: items have to be different altogether"}},
		"a set no more":                {"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}}", []string{"+Widened spec: items need not be different"}},
		"a list like a map":            {"{type: array, items: {type: object}}", "{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a]}", []string{"SizeNarrowed spec: items have to be different by a, b"}},
		"an item's type":               {"{type: array, items: {type: string}}", "{type: array, items: {type: integer}}", []string{"TypeChanged spec[*]: type string becomes integer"}},
		"a property of an item":        {"{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}", []string{"PropertyRemoved spec[*].a: it is removed, and values are dropped"}},
		"a property of a kept item":    {"{x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}}}}", "{x-kubernetes-preserve-unknown-fields: true, items: {type: object}}", []string{"PropertyUndeclared spec[*].a: the schema knows it no more; values are kept and checked by nobody"}},
		"a fraction for whole numbers": {"{type: integer, minimum: 1}", "{type: integer, minimum: 0.5}", []string{"RangeNarrowed spec: minimum 1 becomes 0.5"}},
		"a fraction":                   {"{type: number, maximum: 1}", "{type: number, maximum: 1.5}", []string{"+Widened spec: maximum 1 becomes 1.5"}},
		"an exclusive fraction":        {"{type: number, maximum: 1}", "{type: number, maximum: 1.5, exclusiveMaximum: true}", []string{"RangeNarrowed spec: maximum 1 becomes 1.5 (exclusive)"}},
		"items of whatever list":       {"{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true, items: {type: string}}", []string{"TypeChanged spec[*]: type any becomes string"}},
		"items of what is kept":        {"{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true, items: {x-kubernetes-preserve-unknown-fields: true, nullable: true, properties: {a: {type: string}}}}", []string{"+PropertyAdded spec[*].a: it is new"}},

		"a property":                      {"{type: object}", "{type: object, properties: {a: {type: string}}}", []string{"+PropertyAdded spec.a: it is new"}},
		"a property less":                 {"{type: object, properties: {a: {type: string}}}", "{type: object}", []string{"PropertyRemoved spec.a: it is removed, and values are dropped"}},
		"a property less in what is open": {"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"PropertyUndeclared spec.a: the schema knows it no more; values are kept and checked by nobody"}},
		"a property deep down":            {"{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}", "{type: object, properties: {a: {type: object, properties: {b: {type: boolean}}}}}", []string{"TypeChanged spec.a.b: type string becomes boolean"}},
		"required":                        {"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", []string{"RequiredAdded spec.a: it is required now"}},
		"required, with a default":        {"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string, default: b}}}", []string{`+DefaultChanged spec.a: default none becomes "b"`}},
		"required no more":                {"{type: object, required: [a]}", "{type: object}", []string{"+Widened spec.a: it is no longer required"}},
		"more keys":                       {"{type: object}", "{type: object, minProperties: 1}", []string{"SizeNarrowed spec: minProperties 0 becomes 1"}},
		"fewer keys":                      {"{type: object, maxProperties: 2}", "{type: object, maxProperties: 1}", []string{"SizeNarrowed spec: maxProperties 2 becomes 1"}},
		"closed":                          {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", []string{"Closed spec: keys that are not declared are dropped"}},
		"opened":                          {"{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec: keys that are not declared are kept"}},
		"a map":                           {"{type: object}", "{type: object, additionalProperties: {type: string}}", []string{"+Widened spec: keys that are not declared are kept"}},
		"an open object, a map":           {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, additionalProperties: {type: string}}", []string{"TypeChanged spec.*: type any becomes string"}},
		"a map, an open object":           {"{type: object, additionalProperties: {type: string}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec.*: values of other keys may be anything"}},
		"a map, closed":                   {"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: string}}}", []string{"Closed spec: keys that are not declared are dropped"}},
		"a map of others":                 {"{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, maxLength: 2}}", []string{"LengthNarrowed spec.*: maxLength none becomes 2"}},
		"a property that a map had":       {"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: integer}}}", []string{"Closed spec: keys that are not declared are dropped", "TypeChanged spec.a: type string becomes integer"}},
		"a property that a map takes":     {"{type: object, properties: {a: {type: integer}}}", "{type: object, additionalProperties: {type: string}}", []string{"TypeChanged spec.a: type integer becomes string", "+Widened spec: keys that are not declared are kept"}},
		"a map of the word true":          {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, additionalProperties: true}", []string{"Closed spec.*: keys that are not declared are dropped"}},

		"allOf":                  {"{type: string}", "{type: string, allOf: [{maxLength: 3}]}", []string{"ValidationAdded spec: allOf has a new condition"}},
		"allOf that held anyway": {"{type: string, maxLength: 2}", "{type: string, maxLength: 2, allOf: [{maxLength: 3}]}", nil},
		"allOf in another order": {"{type: string, allOf: [{maxLength: 3}, {pattern: a}]}", "{type: string, allOf: [{pattern: a}, {maxLength: 3}]}", nil},
		"allOf that narrows":     {"{type: string, allOf: [{maxLength: 3}]}", "{type: string, allOf: [{maxLength: 2}]}", []string{"LengthNarrowed spec: maxLength 3 becomes 2"}},
		"allOf less":             {"{type: string, allOf: [{maxLength: 3}]}", "{type: string}", nil},
		"anyOf":                  {"{type: object}", "{type: object, anyOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: anyOf takes less"}},
		"anyOf with one more":    {"{type: object, anyOf: [{required: [a]}]}", "{type: object, anyOf: [{required: [b]}, {required: [a]}]}", nil},
		"anyOf with one less":    {"{type: object, anyOf: [{required: [a]}, {required: [b]}]}", "{type: object, anyOf: [{required: [a]}]}", []string{"ValidationAdded spec: anyOf takes less"}},
		"anyOf that is wider":    {"{type: object, anyOf: [{required: [a, b]}, {properties: {k: {enum: [x]}}}]}", "{type: object, anyOf: [{required: [a]}, {properties: {k: {enum: [x, y]}}}]}", nil},
		"anyOf that held anyway": {"{type: object, required: [a]}", "{type: object, required: [a], anyOf: [{required: [a]}, {required: [b]}]}", nil},
		"oneOf becomes anyOf":    {"{type: object, oneOf: [{required: [a]}, {required: [b]}]}", "{type: object, anyOf: [{required: [a]}, {required: [b]}]}", nil},
		"anyOf becomes oneOf":    {"{type: object, anyOf: [{required: [a]}, {required: [b]}]}", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: oneOf takes something else"}},
		"oneOf with one more":    {"{type: object, oneOf: [{required: [a]}]}", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: oneOf takes something else"}},
		"the same oneOf":         {"{type: object, oneOf: [{required: [a]}]}", "{type: object, oneOf: [{required: [a]}]}", nil},
		"not":                    {"{type: string}", "{type: string, not: {enum: [a]}}", []string{"ValidationAdded spec: not refuses more"}},
		"not of less":            {"{type: string, not: {enum: [a, b]}}", "{type: string, not: {enum: [a]}}", nil},
		"not of more":            {"{type: string, not: {enum: [a]}}", "{type: string, not: {enum: [a, b]}}", []string{"ValidationAdded spec: not refuses more"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := told(compat.Compare(definition(t, test.from), definition(t, test.to))), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	type crd = *apiextensionsv1.CustomResourceDefinition
	const plain = "{type: object}"
	for name, test := range map[string]struct {
		change func(from, to crd)
		want   []string
	}{
		"nothing":      {func(_, _ crd) {}, nil},
		"scope":        {func(_, to crd) { to.Spec.Scope = apiextensionsv1.ClusterScoped }, []string{"ScopeChanged scope Namespaced becomes Cluster"}},
		"group":        {func(_, to crd) { to.Spec.Group = "other.com" }, []string{"NamesChanged group example.com becomes other.com"}},
		"plural":       {func(_, to crd) { to.Spec.Names.Plural = "boxen" }, []string{"NamesChanged plural boxes becomes boxen"}},
		"kind":         {func(_, to crd) { to.Spec.Names.Kind = "Case" }, []string{"NamesChanged kind Box becomes Case"}},
		"no list kind": {func(_, to crd) { to.Spec.Names.ListKind = "" }, nil},
		"short name":   {func(_, to crd) { to.Spec.Names.ShortNames = nil }, []string{"+NamesChanged the short name bx is gone"}},
		"category":     {func(_, to crd) { to.Spec.Names.Categories = []string{"all"} }, nil},
		"version gone": {func(_, to crd) { to.Spec.Versions[0].Name = "v2" }, []string{"VersionRemoved version v1 is gone", "+VersionAdded version v2 is new"}},
		"version that nobody served, gone": {func(from, to crd) {
			from.Spec.Versions[0].Served, to.Spec.Versions[0].Name = false, "v2"
		}, []string{"VersionRemoved version v1 is gone", "+VersionAdded version v2 is new"}},
		"version not served":   {func(_, to crd) { to.Spec.Versions[0].Served = false }, []string{"VersionUnserved version v1 is no longer served"}},
		"version served again": {func(from, _ crd) { from.Spec.Versions[0].Served = false }, nil},
		"deprecated":           {func(_, to crd) { to.Spec.Versions[0].Deprecated = true }, []string{"+VersionDeprecated version v1 is deprecated"}},
		"another is stored": {func(_, to crd) {
			to.Spec.Versions[0].Storage = false
			to.Spec.Versions = append(to.Spec.Versions, version("v2", nil))
		}, []string{"+StorageVersionChanged objects are stored as v2, not as v1", "+VersionAdded version v2 is new"}},
		"no schema before":  {func(from, _ crd) { from.Spec.Versions[0].Schema = nil }, []string{"Closed keys that are not declared are dropped", "+PropertyAdded spec: it is new"}},
		"no schema after":   {func(_, to crd) { to.Spec.Versions[0].Schema = nil }, []string{"PropertyUndeclared spec: the schema knows it no more; values are kept and checked by nobody", "+Widened keys that are not declared are kept"}},
		"closed as a whole": {func(from, _ crd) { from.Spec.PreserveUnknownFields = true }, []string{"Closed keys that are not declared are dropped"}},
		"metadata spelled out": {func(_, to crd) {
			to.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		}, nil},
		"status": {func(from, to crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
			to.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, []string{"SubresourceChanged the subresource status is gone", "+SubresourceAdded the subresource scale is new"}},
		"scale": {func(from, _ crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, []string{"SubresourceChanged the subresource scale is gone"}},
		"scale of another field": {func(from, to crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a", StatusReplicasPath: ".status.a"}}
			to.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.b", StatusReplicasPath: ".status.a", LabelSelectorPath: new(".status.s")}}
		}, []string{"SubresourceChanged the subresource scale means other fields: .spec.b, .status.a, .status.s"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := definition(t, plain), definition(t, plain)
			test.change(from, to)
			if got, want := told(compat.Compare(from, to)), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestBreaks(t *testing.T) {
	from := definition(t, "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}, b: {type: string}}}")
	to := definition(t, "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: integer}, c: {type: string}}}")
	if got, want := compat.Breaks(from, to), "spec.b: "; !strings.HasPrefix(got, want) || strings.Contains(got, "; ") {
		t.Errorf("got %q, want %s… alone", got, want)
	}
	if got := compat.Breaks(from, from); got != "" {
		t.Errorf("no change breaks %q", got)
	}
	many := definition(t, "{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}, d: {type: integer}, e: {type: integer}, f: {type: integer}, g: {type: integer}}}")
	if got := compat.Breaks(many, definition(t, "{type: object}")); strings.Count(got, "; ") != 5 || !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("of seven changes %q", got)
	}
}

// Versions are told apart, and each change is told once.
func TestVersionsAreNamed(t *testing.T) {
	from, to := definition(t, "{type: object, properties: {a: {type: string}}}"), definition(t, "{type: object}")
	from.Spec.Versions = append(from.Spec.Versions, version("v2", from.Spec.Versions[0].Schema.OpenAPIV3Schema))
	to.Spec.Versions = append(to.Spec.Versions, version("v2", to.Spec.Versions[0].Schema.OpenAPIV3Schema))
	from.Spec.Versions[1].Storage, to.Spec.Versions[1].Storage = false, false
	var versions []string
	for _, change := range compat.Compare(from, to) {
		versions = append(versions, change.Version+" "+change.Path)
	}
	if !slices.Equal(versions, []string{"v1 spec.a", "v2 spec.a"}) {
		t.Errorf("%q", versions)
	}
}
