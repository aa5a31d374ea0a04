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

// format returns one line per change, "Class path: message", with "+" before
// compatible changes.
func format(changes []compat.Change) string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = string(c.Class) + " " + c.String()
		if !c.Breaking {
			lines[i] = "+" + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

func TestCompare_Schemas(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"nothing":                 {"{type: string}", "{type: string}", nil},
		"description":             {"{type: string}", "{type: string, description: A word, title: Word}", nil},
		"type":                    {"{type: string}", "{type: integer}", []string{"TypeChanged spec: type changed from string to integer"}},
		"wider type":              {"{type: integer}", "{type: number}", []string{"+Widened spec: type changed from integer to number"}},
		"narrower type":           {"{type: number}", "{type: integer}", []string{"TypeChanged spec: type changed from number to integer"}},
		"string to int or string": {"{type: string}", "{x-kubernetes-int-or-string: true}", []string{"+Widened spec: type changed from string to integer or string"}},
		"int or string to string": {"{x-kubernetes-int-or-string: true}", "{type: string}", []string{"TypeChanged spec: type changed from integer or string to string"}},
		"any type":                {"{type: string}", "{x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec: type changed from string to any"}},
		"any type to string":      {"{x-kubernetes-preserve-unknown-fields: true}", "{type: string}", []string{"TypeChanged spec: type changed from any to string"}},
		"int-or-string in full":   {"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", nil},
		"int-or-string, pattern":  {"{x-kubernetes-int-or-string: true}", "{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {pattern: a}]}", []string{"ValidationAdded spec: allOf has a new condition"}},
		"nullable removed":        {"{type: string, nullable: true}", "{type: string}", []string{"NullableRemoved spec: null is no longer allowed"}},
		"nullable added":          {"{type: string}", "{type: string, nullable: true}", nil},

		"enum added":                  {"{type: string}", "{type: string, enum: [a, b]}", []string{`EnumNarrowed spec: only "a", "b" is allowed`}},
		"enum removed":                {"{type: string, enum: [a]}", "{type: string}", []string{`+Widened spec: values other than "a" are now allowed`}},
		"enum changed":                {"{type: string, enum: [a, b]}", "{type: string, enum: [b, c]}", []string{`EnumNarrowed spec: "a" is no longer allowed`, `+Widened spec: "c" is now allowed`}},
		"nullable enum widened":       {"{type: string, nullable: true, allOf: [{enum: [a]}]}", "{type: string, nullable: true, allOf: [{enum: [a, b]}]}", nil},
		"nullable enum narrowed":      {"{type: string, nullable: true, allOf: [{enum: [a, b]}]}", "{type: string, nullable: true, allOf: [{enum: [a]}]}", []string{`EnumNarrowed spec: "b" is no longer allowed`}},
		"nullable enum to plain enum": {"{type: string, nullable: true, allOf: [{enum: [a]}]}", "{type: string, enum: [a]}", []string{`EnumNarrowed spec: only "a" is allowed`}},

		"higher minimum":                 {"{type: integer, minimum: 1}", "{type: integer, minimum: 2}", []string{"RangeNarrowed spec: minimum changed from 1 to 2"}},
		"lower minimum":                  {"{type: integer, minimum: 1}", "{type: integer, minimum: 0}", []string{"+Widened spec: minimum changed from 1 to 0"}},
		"minimum removed":                {"{type: integer, minimum: 1}", "{type: integer}", []string{"+Widened spec: minimum changed from 1 to none"}},
		"exclusive minimum":              {"{type: integer, minimum: 1}", "{type: integer, minimum: 1, exclusiveMinimum: true}", []string{"RangeNarrowed spec: minimum changed from 1 to 1 (exclusive)"}},
		"maximum added":                  {"{type: integer}", "{type: integer, maximum: 0}", []string{"RangeNarrowed spec: maximum changed from none to 0"}},
		"lower maximum":                  {"{type: number, maximum: 1.5}", "{type: number, maximum: 1}", []string{"RangeNarrowed spec: maximum changed from 1.5 to 1"}},
		"multipleOf added":               {"{type: integer}", "{type: integer, multipleOf: 2}", []string{"RangeNarrowed spec: must be a multiple of 2"}},
		"multipleOf of a multiple":       {"{type: integer, multipleOf: 2}", "{type: integer, multipleOf: 4}", []string{"RangeNarrowed spec: must be a multiple of 4"}},
		"multipleOf of a divisor":        {"{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}", nil},
		"multipleOf removed":             {"{type: integer, multipleOf: 4}", "{type: integer}", []string{"+Widened spec: no longer has to be a multiple of 4"}},
		"minimum of a former string":     {"{type: string}", "{x-kubernetes-int-or-string: true, minimum: 1}", []string{"+Widened spec: type changed from string to integer or string"}},
		"minLength added":                {"{type: string}", "{type: string, minLength: 1}", []string{"LengthNarrowed spec: minLength changed from 0 to 1"}},
		"minLength of 0":                 {"{type: string}", "{type: string, minLength: 0}", nil},
		"lower maxLength":                {"{type: string, maxLength: 3}", "{type: string, maxLength: 2}", []string{"LengthNarrowed spec: maxLength changed from 3 to 2"}},
		"pattern added":                  {"{type: string}", "{type: string, pattern: a}", []string{"PatternChanged spec: must match a"}},
		"pattern changed":                {"{type: string, pattern: a}", "{type: string, pattern: b}", []string{"PatternChanged spec: must match b instead of a"}},
		"pattern removed":                {"{type: string, pattern: a}", "{type: string}", []string{"+Widened spec: no longer has to match a"}},
		"format added":                   {"{type: string}", "{type: string, format: ipv4}", []string{"FormatAdded spec: format changed from none to ipv4"}},
		"format removed":                 {"{type: string, format: ipv4}", "{type: string}", []string{"+Widened spec: format changed from ipv4 to none"}},
		"wider format":                   {"{type: integer, format: int32}", "{type: integer, format: int64}", []string{"+Widened spec: format changed from int32 to int64"}},
		"default added":                  {"{type: string}", "{type: string, default: a}", []string{`+DefaultChanged spec: default changed from none to "a"`}},
		"rule added":                     {"{type: object}", "{type: object, x-kubernetes-validations: [{rule: 'has(self.a)'}]}", []string{"ValidationAdded spec: new validation rule: has(self.a)"}},
		"message of a rule changed":      {"{type: object, x-kubernetes-validations: [{rule: a, message: b}]}", "{type: object, x-kubernetes-validations: [{rule: a, message: c}]}", nil},
		"rule removed":                   {"{type: object, x-kubernetes-validations: [{rule: a}]}", "{type: object}", nil},
		"embedded resource":              {"{type: object}", "{type: object, x-kubernetes-embedded-resource: true}", []string{"ValidationAdded spec: must be a complete Kubernetes object"}},
		"minItems added":                 {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, minItems: 1}", []string{"SizeNarrowed spec: minItems changed from 0 to 1"}},
		"maxItems added":                 {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 1}", []string{"SizeNarrowed spec: maxItems changed from none to 1"}},
		"list to set":                    {"{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", []string{"SizeNarrowed spec: items must be unique"}},
		"set to list":                    {"{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}}", []string{"+Widened spec: items no longer have to be unique"}},
		"list to map list":               {"{type: array, items: {type: object}}", "{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a]}", []string{"SizeNarrowed spec: items must be unique by a, b"}},
		"type of items":                  {"{type: array, items: {type: string}}", "{type: array, items: {type: integer}}", []string{"TypeChanged spec[*]: type changed from string to integer"}},
		"property of items removed":      {"{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}", []string{"PropertyRemoved spec[*].a: removed, values are dropped"}},
		"property of open items removed": {"{x-kubernetes-preserve-unknown-fields: true, items: {type: object, properties: {a: {type: string}}}}", "{x-kubernetes-preserve-unknown-fields: true, items: {type: object}}", []string{"PropertyUndeclared spec[*].a: no longer in the schema, values are kept but not validated"}},
		"fractional minimum of integer":  {"{type: integer, minimum: 1}", "{type: integer, minimum: 0.5}", []string{"RangeNarrowed spec: minimum changed from 1 to 0.5"}},
		"fractional maximum":             {"{type: number, maximum: 1}", "{type: number, maximum: 1.5}", []string{"+Widened spec: maximum changed from 1 to 1.5"}},
		"exclusive fractional maximum":   {"{type: number, maximum: 1}", "{type: number, maximum: 1.5, exclusiveMaximum: true}", []string{"RangeNarrowed spec: maximum changed from 1 to 1.5 (exclusive)"}},
		"items of any list":              {"{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true, items: {type: string}}", []string{"TypeChanged spec[*]: type changed from any to string"}},
		"items of an open schema":        {"{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-preserve-unknown-fields: true, items: {x-kubernetes-preserve-unknown-fields: true, nullable: true, properties: {a: {type: string}}}}", []string{"+PropertyAdded spec[*].a: added"}},

		"property added":                    {"{type: object}", "{type: object, properties: {a: {type: string}}}", []string{"+PropertyAdded spec.a: added"}},
		"property removed":                  {"{type: object, properties: {a: {type: string}}}", "{type: object}", []string{"PropertyRemoved spec.a: removed, values are dropped"}},
		"property removed from open object": {"{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"PropertyUndeclared spec.a: no longer in the schema, values are kept but not validated"}},
		"nested property":                   {"{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}", "{type: object, properties: {a: {type: object, properties: {b: {type: boolean}}}}}", []string{"TypeChanged spec.a.b: type changed from string to boolean"}},
		"required added":                    {"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string}}}", []string{"RequiredAdded spec.a: now required"}},
		"required added with default":       {"{type: object, properties: {a: {type: string}}}", "{type: object, required: [a], properties: {a: {type: string, default: b}}}", []string{`+DefaultChanged spec.a: default changed from none to "b"`}},
		"required removed":                  {"{type: object, required: [a]}", "{type: object}", []string{"+Widened spec.a: no longer required"}},
		"minProperties added":               {"{type: object}", "{type: object, minProperties: 1}", []string{"SizeNarrowed spec: minProperties changed from 0 to 1"}},
		"lower maxProperties":               {"{type: object, maxProperties: 2}", "{type: object, maxProperties: 1}", []string{"SizeNarrowed spec: maxProperties changed from 2 to 1"}},
		"open object to closed object":      {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", []string{"Closed spec: undeclared keys are dropped"}},
		"closed object to open object":      {"{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec: undeclared keys are kept"}},
		"closed object to map":              {"{type: object}", "{type: object, additionalProperties: {type: string}}", []string{"+Widened spec: undeclared keys are kept"}},
		"open object to map":                {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, additionalProperties: {type: string}}", []string{"TypeChanged spec.*: type changed from any to string"}},
		"map to open object":                {"{type: object, additionalProperties: {type: string}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", []string{"+Widened spec.*: undeclared keys may have any value"}},
		"map to closed object":              {"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: string}}}", []string{"Closed spec: undeclared keys are dropped"}},
		"schema of map entries":             {"{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, maxLength: 2}}", []string{"LengthNarrowed spec.*: maxLength changed from none to 2"}},
		"map to property of another type":   {"{type: object, additionalProperties: {type: string}}", "{type: object, properties: {a: {type: integer}}}", []string{"Closed spec: undeclared keys are dropped", "TypeChanged spec.a: type changed from string to integer"}},
		"property to map of another type":   {"{type: object, properties: {a: {type: integer}}}", "{type: object, additionalProperties: {type: string}}", []string{"TypeChanged spec.a: type changed from integer to string", "+Widened spec: undeclared keys are kept"}},
		"open object to map with true":      {"{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, additionalProperties: true}", []string{"Closed spec.*: undeclared keys are dropped"}},

		"allOf added":            {"{type: string}", "{type: string, allOf: [{maxLength: 3}]}", []string{"ValidationAdded spec: allOf has a new condition"}},
		"allOf already implied":  {"{type: string, maxLength: 2}", "{type: string, maxLength: 2, allOf: [{maxLength: 3}]}", nil},
		"allOf reordered":        {"{type: string, allOf: [{maxLength: 3}, {pattern: a}]}", "{type: string, allOf: [{pattern: a}, {maxLength: 3}]}", nil},
		"allOf narrowed":         {"{type: string, allOf: [{maxLength: 3}]}", "{type: string, allOf: [{maxLength: 2}]}", []string{"LengthNarrowed spec: maxLength changed from 3 to 2"}},
		"allOf removed":          {"{type: string, allOf: [{maxLength: 3}]}", "{type: string}", nil},
		"anyOf added":            {"{type: object}", "{type: object, anyOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: anyOf accepts fewer values"}},
		"anyOf branch added":     {"{type: object, anyOf: [{required: [a]}]}", "{type: object, anyOf: [{required: [b]}, {required: [a]}]}", nil},
		"anyOf branch removed":   {"{type: object, anyOf: [{required: [a]}, {required: [b]}]}", "{type: object, anyOf: [{required: [a]}]}", []string{"ValidationAdded spec: anyOf accepts fewer values"}},
		"anyOf branches widened": {"{type: object, anyOf: [{required: [a, b]}, {properties: {k: {enum: [x]}}}]}", "{type: object, anyOf: [{required: [a]}, {properties: {k: {enum: [x, y]}}}]}", nil},
		"anyOf already implied":  {"{type: object, required: [a]}", "{type: object, required: [a], anyOf: [{required: [a]}, {required: [b]}]}", nil},
		"oneOf to anyOf":         {"{type: object, oneOf: [{required: [a]}, {required: [b]}]}", "{type: object, anyOf: [{required: [a]}, {required: [b]}]}", nil},
		"anyOf to oneOf":         {"{type: object, anyOf: [{required: [a]}, {required: [b]}]}", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: oneOf accepts other values"}},
		"oneOf branch added":     {"{type: object, oneOf: [{required: [a]}]}", "{type: object, oneOf: [{required: [a]}, {required: [b]}]}", []string{"ValidationAdded spec: oneOf accepts other values"}},
		"oneOf unchanged":        {"{type: object, oneOf: [{required: [a]}]}", "{type: object, oneOf: [{required: [a]}]}", nil},
		"not added":              {"{type: string}", "{type: string, not: {enum: [a]}}", []string{"ValidationAdded spec: not rejects more values"}},
		"not narrowed":           {"{type: string, not: {enum: [a, b]}}", "{type: string, not: {enum: [a]}}", nil},
		"not widened":            {"{type: string, not: {enum: [a]}}", "{type: string, not: {enum: [a, b]}}", []string{"ValidationAdded spec: not rejects more values"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := format(compat.Compare(definition(t, test.from), definition(t, test.to))), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestCompare_CRDs(t *testing.T) {
	type crd = *apiextensionsv1.CustomResourceDefinition
	const plain = "{type: object}"
	for name, test := range map[string]struct {
		change func(from, to crd)
		want   []string
	}{
		"nothing":         {func(_, _ crd) {}, nil},
		"scope":           {func(_, to crd) { to.Spec.Scope = apiextensionsv1.ClusterScoped }, []string{"ScopeChanged scope changed from Namespaced to Cluster"}},
		"group":           {func(_, to crd) { to.Spec.Group = "other.com" }, []string{"NamesChanged group changed from example.com to other.com"}},
		"plural":          {func(_, to crd) { to.Spec.Names.Plural = "boxen" }, []string{"NamesChanged plural changed from boxes to boxen"}},
		"kind":            {func(_, to crd) { to.Spec.Names.Kind = "Case" }, []string{"NamesChanged kind changed from Box to Case"}},
		"no list kind":    {func(_, to crd) { to.Spec.Names.ListKind = "" }, nil},
		"short name":      {func(_, to crd) { to.Spec.Names.ShortNames = nil }, []string{"+NamesChanged short name bx was removed"}},
		"category":        {func(_, to crd) { to.Spec.Names.Categories = []string{"all"} }, nil},
		"version removed": {func(_, to crd) { to.Spec.Versions[0].Name = "v2" }, []string{"VersionRemoved version v1 was removed", "+VersionAdded version v2 was added"}},
		"unserved version removed": {func(from, to crd) {
			from.Spec.Versions[0].Served, to.Spec.Versions[0].Name = false, "v2"
		}, []string{"VersionRemoved version v1 was removed", "+VersionAdded version v2 was added"}},
		"version not served":   {func(_, to crd) { to.Spec.Versions[0].Served = false }, []string{"VersionUnserved version v1 is no longer served"}},
		"version served again": {func(from, _ crd) { from.Spec.Versions[0].Served = false }, nil},
		"deprecated":           {func(_, to crd) { to.Spec.Versions[0].Deprecated = true }, []string{"+VersionDeprecated version v1 is deprecated"}},
		"storage version changed": {func(_, to crd) {
			to.Spec.Versions[0].Storage = false
			to.Spec.Versions = append(to.Spec.Versions, version("v2", nil))
		}, []string{"+StorageVersionChanged storage version changed from v1 to v2", "+VersionAdded version v2 was added"}},
		"schema added":                  {func(from, _ crd) { from.Spec.Versions[0].Schema = nil }, []string{"Closed undeclared keys are dropped", "+PropertyAdded spec: added"}},
		"schema removed":                {func(_, to crd) { to.Spec.Versions[0].Schema = nil }, []string{"PropertyUndeclared spec: no longer in the schema, values are kept but not validated", "+Widened undeclared keys are kept"}},
		"preserveUnknownFields removed": {func(from, _ crd) { from.Spec.PreserveUnknownFields = true }, []string{"Closed undeclared keys are dropped"}},
		"metadata declared": {func(_, to crd) {
			to.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
		}, nil},
		"status": {func(from, to crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
			to.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, []string{"SubresourceChanged subresource status was removed", "+SubresourceAdded subresource scale was added"}},
		"scale": {func(from, _ crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{}}
		}, []string{"SubresourceChanged subresource scale was removed"}},
		"scale of another field": {func(from, to crd) {
			from.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a", StatusReplicasPath: ".status.a"}}
			to.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.b", StatusReplicasPath: ".status.a", LabelSelectorPath: new(".status.s")}}
		}, []string{"SubresourceChanged subresource scale refers to other fields: .spec.b, .status.a, .status.s"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := definition(t, plain), definition(t, plain)
			test.change(from, to)
			if got, want := format(compat.Compare(from, to)), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestBreaks_ListsAtMostFiveChanges(t *testing.T) {
	from := definition(t, "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}, b: {type: string}}}")
	to := definition(t, "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: integer}, c: {type: string}}}")
	if got, want := compat.Breaks(from, to), "spec.b: "; !strings.HasPrefix(got, want) || strings.Contains(got, "; ") {
		t.Errorf("got %q, want only %s…", got, want)
	}
	if got := compat.Breaks(from, from); got != "" {
		t.Errorf("equal CRDs: got %q, want none", got)
	}
	many := definition(t, "{type: object, properties: {a: {type: integer}, b: {type: integer}, c: {type: integer}, d: {type: integer}, e: {type: integer}, f: {type: integer}, g: {type: integer}}}")
	if got := compat.Breaks(many, definition(t, "{type: object}")); strings.Count(got, "; ") != 5 || !strings.HasSuffix(got, "; and 2 more") {
		t.Errorf("seven changes: got %q, want five and a count", got)
	}
}

// Each change is reported once per version.
func TestCompare_ReportsEachVersion(t *testing.T) {
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
