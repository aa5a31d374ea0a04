package kindstatus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
)

func TestCompile_RejectsInvalidExpressions(t *testing.T) {
	for _, test := range []struct{ name, expression, want string }{
		{"no CEL", "1 +", "column 4: Syntax error"},
		{"a variable that is not there", "podz", "column 1: undeclared reference to 'podz'"},
		{"a field that is not there", "release.nmae", "column 8: undefined field 'nmae'"},
		{"a field that no object has", "resources.map(r, r.status)", "column 19: undefined field 'status'"},
		{"types that do not fit", "release.revision + 'a'", "column 18: found no matching overload for '_+_'"},
		{"an entry that is not there", "size(observed.podz)", "observe has no entry podz: expected one of claims, pods"},
		{"an entry by its text", "observed['podz']", "observe has no entry podz"},
		{"whether there is an entry", "has(observed.podz)", "observe has no entry podz"},
		{"the second line", "release.name +\n  podz", "line 2, column 3: undeclared reference to 'podz'"},
		{"the clock", "now()", "column 4: undeclared reference to 'now'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, problems := kindstatus.Compile(map[string]string{"a": test.expression}, []string{"claims", "pods"})
			if len(problems) != 1 || problems[0].Field != "a" || !strings.HasPrefix(problems[0].Message, test.want) || strings.Contains(problems[0].Message, "\n") {
				t.Errorf("problems are %q, want one that begins %q", problems, test.want)
			}
			if fields != nil {
				t.Error("Compile returned fields with the error")
			}
		})
	}
}

func TestCompile_ReportsAllErrors(t *testing.T) {
	_, problems := kindstatus.Compile(map[string]string{"c": "x", "a": "y", "b": "1"}, nil)
	if text := fmt.Sprint(problems); text != "[a: column 1: undeclared reference to 'y' c: column 1: undeclared reference to 'x']" {
		t.Error(text)
	}
	if _, problems := kindstatus.Compile(map[string]string{"a": "observed.pods"}, nil); len(problems) != 1 || !strings.Contains(problems[0].Error(), "the entry has no observe") {
		t.Error(problems)
	}
}

func TestCompile_Shapes(t *testing.T) {
	text, anything := &kindstatus.Shape{Type: kindstatus.TypeString}, &kindstatus.Shape{}
	for expression, want := range map[string]kindstatus.Shape{
		"'a'":                                   {Type: kindstatus.TypeString},
		"1":                                     {Type: kindstatus.TypeInteger},
		"size(resources)":                       {Type: kindstatus.TypeInteger},
		"1.5":                                   {Type: kindstatus.TypeNumber},
		"release.revision > 1":                  {Type: kindstatus.TypeBoolean},
		"timestamp('2026-01-01T00:00:00Z')":     {Type: kindstatus.TypeString, Format: "date-time"},
		"b'a'":                                  {Type: kindstatus.TypeString, Format: "byte"},
		"duration('1s')":                        {Type: kindstatus.TypeString},
		"['a']":                                 {Type: kindstatus.TypeList, Item: text},
		"resources.map(r, r.name)":              {Type: kindstatus.TypeList, Item: text},
		"{'a': 'b'}":                            {Type: kindstatus.TypeMap, Item: text},
		"release":                               {Type: kindstatus.TypeMap, Item: anything},
		"values.a":                              {},
		"null":                                  {},
		"observed.pods.map(p, p.metadata.name)": {Type: kindstatus.TypeList, Item: anything},
		"values.?a.optMap(x, string(x))":        {Type: kindstatus.TypeString},
		"true ? 'a' : values.a":                 {},
		"observed.pods.map(p, string(p.a)).sort()": {Type: kindstatus.TypeList, Item: text},
	} {
		fields, problems := kindstatus.Compile(map[string]string{"a": expression}, []string{"pods"})
		if len(problems) > 0 {
			t.Errorf("%s: %v", expression, problems)
			continue
		}
		got, ok := fields.Shape("a")
		if !ok || got.Type != want.Type || got.Format != want.Format || (got.Item == nil) != (want.Item == nil) || got.Item != nil && *got.Item != *want.Item {
			t.Errorf("%s has the shape %+v (%+v), want %+v (%+v)", expression, got, got.Item, want, want.Item)
		}
	}
}

func TestFields_ByName(t *testing.T) {
	fields, problems := kindstatus.Compile(map[string]string{"b": "1", "a": "values.a"}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if names := fields.Names(); !slices.Equal(names, []string{"a", "b"}) {
		t.Error(names)
	}
	if _, ok := fields.Shape("c"); ok {
		t.Error("there is a field c")
	}
	if !fields.UseValues() {
		t.Error("no field uses values")
	}
	var none kindstatus.Fields
	if _, ok := none.Shape("a"); ok || len(none.Names()) > 0 || none.UseValues() || len(none.Evaluate(kindstatus.Input{}).Values) > 0 {
		t.Error("nil Fields have fields")
	}
}
