package catalog

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTemplate_For(t *testing.T) {
	cr := map[string]any{
		"metadata": map[string]any{"name": "web", "namespace": "apps", "labels": map[string]any{"team.example.com/name": "Blue"}},
		"spec":     map[string]any{"targetNamespace": "blue", "count": int64(3), "empty": "", "bad": "Not_A_Name"},
	}
	for _, test := range []struct {
		name, text, want string
		// fails is a part of the expected error, which also contains the key.
		fails string
	}{
		{name: "a name", text: "deployer", want: "deployer"},
		{name: "a field", text: "{{ .spec.targetNamespace }}", want: "blue"},
		{name: "a part", text: "team-{{ .spec.targetNamespace }}-{{ .spec.count }}", want: "team-blue-3"},
		{name: "a label", text: `{{ index .metadata.labels "team.example.com/name" | lower }}`, want: "blue"},
		{name: "a default", text: `{{ .spec.empty | default .metadata.namespace }}`, want: "apps"},
		{name: "a condition", text: `{{ if eq .metadata.name "web" }}one{{ else }}two{{ end }}`, want: "one"},
		{name: "a field that is not there", text: "{{ .spec.other }}", fails: "other"},
		{name: "a field of a field that is not there", text: "{{ .other.field }}", fails: "other"},
		{name: "an empty field", text: "{{ .spec.empty }}", fails: `""`},
		{name: "a field that is no name", text: "{{ .spec.bad }}", fails: `"Not_A_Name"`},
		{name: "a map", text: "{{ .spec }}", fails: "map["},
		{name: "spaces around", text: " blue ", fails: `" blue "`},
		{name: "two names", text: "{{ .spec.targetNamespace }}.{{ .metadata.name }}", fails: `"blue.web"`},
		{name: "too long", text: strings.Repeat("a", 64), fails: "63"},
		{name: "a function that fails", text: `{{ fail "no" }}`, fails: "no"},
		{name: "null", text: `{{ index .spec "missing" }}`, fails: "no value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			name, err := parseTemplate("releaseNamespace", test.text, validation.IsDNS1123Label)
			if err != nil {
				t.Fatal(err)
			}
			got, err := name.For(cr)
			switch {
			case test.fails == "":
				if err != nil || got != test.want {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
			case err == nil:
				t.Errorf("got %q, want an error", got)
			case !strings.HasPrefix(err.Error(), "releaseNamespace: ") || !strings.Contains(err.Error(), test.fails):
				t.Errorf("got %v, want it to name releaseNamespace and %s", err, test.fails)
			}
		})
	}
}

func TestParseTemplate_RejectsInvalidTemplates(t *testing.T) {
	for _, text := range []string{"{{ .spec", "{{ unknown . }}", "{{ if }}"} {
		if _, err := parseTemplate("serviceAccountName", text, validation.IsDNS1123Label); err == nil || !strings.HasPrefix(err.Error(), "serviceAccountName: not a template: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if name, err := parseTemplate("serviceAccountName", "", validation.IsDNS1123Label); name != nil || err != nil {
		t.Errorf("an empty text: %v, %v", name, err)
	}
}

func TestTemplate_ObjectNameMayHaveDots(t *testing.T) {
	cr := map[string]any{"metadata": map[string]any{"name": "web.blue"}}
	for text, want := range map[string]string{"{{ .metadata.name }}-values": "web.blue-values", "{{ .metadata.name }}/values": "", "../{{ .metadata.name }}": ""} {
		name, err := parseTemplate("valuesFrom[0].name", text, validation.IsDNS1123Subdomain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := name.For(cr)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "valuesFrom[0].name: ") {
			t.Errorf("%s: the error does not name the key: %v", text, err)
		}
	}
}

func TestParseBool(t *testing.T) {
	cluster := map[string]any{"spec": map[string]any{"create": true, "name": "web"}}
	for _, test := range []struct {
		text     string
		on, ends bool
	}{
		{"true", true, false}, {"false", false, false},
		{"{{ .spec.create }}", true, false}, {`{{ dig "other" false .spec }}`, false, false}, {`{{ eq .spec.name "web" }}`, true, false},
		{"{{ .spec.none }}", false, true}, {"{{ .spec.name }}", false, true},
	} {
		s, err := parseBool(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if on, err := s.BoolFor(cluster); on != test.on || (err != nil) != test.ends {
			t.Errorf("%s: %t, %v", test.text, on, err)
		}
	}
	for _, text := range []string{"perhaps", "{{ if }}"} {
		if _, err := parseBool(text); err == nil || !strings.HasPrefix(err.Error(), "createNamespace: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, err := parseBool(""); s != nil || err != nil {
		t.Errorf("nothing: %v, %v", s, err)
	}
}
