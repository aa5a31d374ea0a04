package catalog_test

import (
	"slices"
	"strings"
	"testing"
)

func TestOutputs_Sensitive(t *testing.T) {
	const word, whole, list = "- {kind: Secret, name: a, key: b, targetPath: database.password}", "- {kind: Secret, name: a}", "- {kind: Secret, name: a, key: b, targetPath: 'users[0].password'}"
	for _, test := range []struct {
		name, value string
		sources     []string
		sensitive   bool
	}{
		{"the release", "release.name", []string{whole}, false},
		{"a ConfigMap", "objects.ConfigMap.a.data.b", nil, false},
		{"a Secret", "objects.Secret[release.name].data.b", nil, true},
		{"a Secret by index", "objects['Secret'].a.data.b", nil, true},
		{"a Secret in a macro", "[1].map(i, objects.Secret.a.data.b)[0]", nil, true},
		{"a Secret of another group", "objects['Secret.example.com'].a.spec.b", nil, true},
		{"a value without sources", "values.database.password", nil, false},
		{"a value with a ConfigMap", "values.database.password", []string{"- {kind: ConfigMap, name: a}"}, false},
		{"a value with a whole Secret", "values.replicas", []string{whole}, true},
		{"the value of a Secret", "values.database.password", []string{word}, true},
		{"a value around that of a Secret", "values.database", []string{word}, true},
		{"a value inside that of a Secret", "values.database.password.text", []string{word}, true},
		{"all values", "size(values)", []string{word}, true},
		{"a computed value", "values[release.name]", []string{word}, true},
		{"a value by an optional index", "values[?'database'].?password.orValue('')", []string{word}, true},
		{"another value", "values.replicas", []string{word}, false},
		{"another value next to that of a Secret", "values.database.port", []string{word}, false},
		{"a list with the value of a Secret", "values.users[0].name", []string{list}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			lines := append([]string{"outputs: [{name: a, value: \"" + test.value + "\"}]", "valuesFrom:"}, test.sources...)
			if len(test.sources) == 0 {
				lines = lines[:1]
			}
			kinds, err := own(t, lines...)
			if err != nil {
				t.Fatal(err)
			}
			public, sensitive := kinds[0].Outputs.Public.Names(), kinds[0].Outputs.Sensitive.Names()
			if slices.Contains(sensitive, "a") != test.sensitive || slices.Contains(public, "a") == test.sensitive {
				t.Errorf("public %v, sensitive %v", public, sensitive)
			}
		})
	}
}

func TestOutputs_Compile(t *testing.T) {
	kinds, err := own(t, "outputs: [{name: a, value: values.replicas, sensitive: true}, {name: b, value: \"objects['Set.apps'].a.b + objects.Secret.c.d\"}]")
	if err != nil {
		t.Fatal(err)
	}
	if names := kinds[0].Outputs.Sensitive.Names(); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("sensitive are %v", names)
	}
	if objects := kinds[0].Outputs.Objects; len(objects) != 2 || objects["Set.apps"].Group != "apps" || objects["Secret"].Kind != "Secret" {
		t.Errorf("objects are %v", objects)
	}
	if kinds[0].Defaults["replicas"] != int64(2) {
		t.Errorf("defaults are %v", kinds[0].Defaults)
	}
	for value, want := range map[string]string{
		"relese.name":                  "watches.yaml:5: outputs[0].value: column 1: undeclared reference to 'relese'",
		"release.nam":                  "watches.yaml:5: outputs[0].value: column 8: undefined field 'nam'",
		"size(objects)":                "watches.yaml:5: outputs[0].value: objects is read without a kind: expected objects.<kind>['<name>']",
		"objects[release.name].a.b":    "watches.yaml:5: outputs[0].value: objects is read without a kind",
		"size(observed.pods)":          "watches.yaml:5: outputs[0].value: observe has no entry pods",
		"objects.map(k, objects[k].a)": "watches.yaml:5: outputs[0].value: objects is read without a kind",
	} {
		if _, err := own(t, "outputs: [{name: a, value: '"+value+"'}]"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := own(t, "status: {a: objects.Secret.a.data.b}"); err == nil || !strings.Contains(err.Error(), "undeclared reference to 'objects'") {
		t.Errorf("a status field reads objects: %v", err)
	}
}
