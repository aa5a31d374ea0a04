package apply

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	// This decodes whole numbers as int64.
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Test",` + strings.TrimPrefix(text, "{"))); err != nil {
		t.Fatal(err)
	}
	return object
}

func encode(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	content := object.DeepCopy().Object
	delete(content, "apiVersion")
	delete(content, "kind")
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The texts of the errors are those of the API server.
func TestNormalize_Object(t *testing.T) {
	for _, test := range []struct {
		name    string
		object  string
		refusal string
		want    string
		done    []string
	}{
		{
			name:    "a duplicate",
			object:  `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"A","value":"3"}]}]}}}}`,
			refusal: `failed to create typed patch object (apps/web; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]`,
			want:    `{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"3"},{"name":"B","value":"2"}],"name":"c"}]}}}}`,
			done:    []string{`spec.template.spec.containers[name="c"].env has duplicate key [name="A"]: the last item is used`},
		},
		{
			name:    "three items with the same key",
			object:  `{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"},{"name":"A","value":"3"}]}`,
			refusal: `.env: duplicate entries for key [name="A"]`,
			want:    `{"env":[{"name":"A","value":"3"}]}`,
			done:    []string{`env has duplicate key [name="A"]: the last item is used`},
		},
		{
			name:    "several duplicates and an undeclared field",
			object:  `{"spec":{"bogus":1,"containers":[{"name":"a","env":[{"name":"A"},{"name":"A"}]},{"name":"b","env":[{"name":"B","value":"1"},{"name":"B","value":"2"}]}]}}`,
			refusal: "failed to create typed patch object (apps/web; apps/v1, Kind=Deployment): errors:\n  .spec.containers[name=\"a\"].env: duplicate entries for key [name=\"A\"]\n  .spec.containers[name=\"b\"].env: duplicate entries for key [name=\"B\"]\n  .spec.bogus: field not declared in schema\n",
			want:    `{"spec":{"containers":[{"env":[{"name":"A"}],"name":"a"},{"env":[{"name":"B","value":"2"}],"name":"b"}]}}`,
			done: []string{
				`spec.containers[name="a"].env has duplicate key [name="A"]: the last item is used`,
				`spec.containers[name="b"].env has duplicate key [name="B"]: the last item is used`,
				`dropped spec.bogus: no such field`,
			},
		},
		{
			name:    "a key of two fields",
			object:  `{"ports":[{"containerPort":80,"protocol":"TCP","name":"a"},{"containerPort":80,"protocol":"UDP","name":"b"},{"containerPort":80,"protocol":"TCP","name":"c"}]}`,
			refusal: `.ports: duplicate entries for key [containerPort=80,protocol="TCP"]`,
			want:    `{"ports":[{"containerPort":80,"name":"c","protocol":"TCP"},{"containerPort":80,"name":"b","protocol":"UDP"}]}`,
			done:    []string{`ports has duplicate key [containerPort=80,protocol="TCP"]: the last item is used`},
		},
		{
			name:    "a field of the key is a default",
			object:  `{"ports":[{"containerPort":80,"name":"a"},{"containerPort":8080},{"containerPort":80,"protocol":"TCP","name":"b"}]}`,
			refusal: `.ports: duplicate entries for key [containerPort=80,protocol="TCP"]`,
			want:    `{"ports":[{"containerPort":80,"name":"b","protocol":"TCP"},{"containerPort":8080}]}`,
			done:    []string{`ports has duplicate key [containerPort=80,protocol="TCP"]: the last item is used`},
		},
		{
			name:    "a key that is not a string",
			object:  `{"list":[{"on":true,"v":1},{"on":false,"v":2},{"on":true,"v":3}]}`,
			refusal: `.list: duplicate entries for key [on=true]`,
			want:    `{"list":[{"on":true,"v":3},{"on":false,"v":2}]}`,
			done:    []string{`list has duplicate key [on=true]: the last item is used`},
		},
		{
			name:    "a key with punctuation",
			object:  `{"env":[{"name":"A.B-C/D","value":"1"},{"name":"A.B-C/D","value":"2"}]}`,
			refusal: `.env: duplicate entries for key [name="A.B-C/D"]`,
			want:    `{"env":[{"name":"A.B-C/D","value":"2"}]}`,
			done:    []string{`env has duplicate key [name="A.B-C/D"]: the last item is used`},
		},
		{
			name:    "an undeclared field of a list item, by key",
			object:  `{"spec":{"containers":[{"name":"a","bogus":1},{"name":"b","bogus":2}]}}`,
			refusal: `.spec.containers[name="b"].bogus: field not declared in schema`,
			want:    `{"spec":{"containers":[{"bogus":1,"name":"a"},{"name":"b"}]}}`,
			done:    []string{`dropped spec.containers[name="b"].bogus: no such field`},
		},
		{
			name:    "an undeclared field of a list item, by index",
			object:  `{"spec":{"rules":[{"bogus":1},{"bogus":2}]}}`,
			refusal: `.spec.rules[1].bogus: field not declared in schema`,
			want:    `{"spec":{"rules":[{"bogus":1},{}]}}`,
			done:    []string{`dropped spec.rules[1].bogus: no such field`},
		},
		{
			name:    "a field in a dropped field",
			object:  `{"spec":{"bogus":{"inner":1}}}`,
			refusal: "errors:\n  .spec.bogus: field not declared in schema\n  .spec.bogus.inner: field not declared in schema\n",
			want:    `{"spec":{}}`,
			done:    []string{`dropped spec.bogus: no such field`},
		},
		{
			name:    "the same error twice",
			object:  `{"spec":{"bogus":1}}`,
			refusal: "errors:\n  .spec.bogus: field not declared in schema\n  .spec.bogus: field not declared in schema\n",
			want:    `{"spec":{}}`,
			done:    []string{`dropped spec.bogus: no such field`},
		},
		{
			name:    "an object name with a dot",
			object:  `{"spec":{"bogus":1}}`,
			refusal: `failed to create typed patch object (apps/web.example.com; apps/v1, Kind=Deployment): .spec.bogus: field not declared in schema`,
			want:    `{"spec":{}}`,
			done:    []string{`dropped spec.bogus: no such field`},
		},
		{name: "a wrong type", object: `{"spec":{"replicas":"three"}}`, refusal: `failed to create typed patch object (apps/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string`},
		{name: "an immutable field", object: `{"spec":{"clusterIP":"a"}}`, refusal: `Service "web" is invalid: spec.clusterIP: Invalid value: "a": field is immutable`},
		{name: "an empty error", object: `{"spec":{}}`},
		{name: "a path that does not exist", object: `{"spec":{"a":1}}`, refusal: `.spec.b.c: field not declared in schema`},
		{name: "a path through a string", object: `{"spec":"a"}`, refusal: `.spec.b.c: field not declared in schema`},
		{name: "an index beyond the list", object: `{"a":[{}]}`, refusal: `.a[3].b: field not declared in schema`},
		{name: "a list item that does not exist", object: `{"a":[{"name":"x","b":1}]}`, refusal: `.a[name="y"].b: field not declared in schema`},
		{name: "list items that are not objects", object: `{"a":["x","x"]}`, refusal: `.a: duplicate entries for key [name="x"]`},
		{name: "a duplicate that does not exist", object: `{"a":[{"name":"x"}]}`, refusal: `.a: duplicate entries for key [name="x"]`},
		{name: "a duplicate in a map", object: `{"a":{"name":"x"}}`, refusal: `.a: duplicate entries for key [name="x"]`},
		{name: "a path with an unclosed bracket", object: `{"a":[{"b":1}]}`, refusal: `.a[name="x.b: field not declared in schema`},
		{name: "a key without a value", object: `{"a":[{"b":1},{"b":1}]}`, refusal: `.a: duplicate entries for key [b]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := decode(t, test.object)
			done := normalize(object, test.refusal)
			if diff := cmp.Diff(test.done, done); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			want := test.want
			if want == "" {
				want = encode(t, decode(t, test.object))
			}
			if diff := cmp.Diff(want, encode(t, object)); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if again := normalize(object, test.refusal); len(again) > 0 {
				t.Errorf("second call: %q", again)
			}
			if diff := cmp.Diff(want, encode(t, object)); diff != "" {
				t.Errorf("object after the second call (-want +got):\n%s", diff)
			}
		})
	}
}

// normalize must not panic, and must not report changes forever.
func FuzzNormalize(f *testing.F) {
	f.Add(`{"a":[{"name":"x"},{"name":"x"}]}`, `.a: duplicate entries for key [name="x"]`)
	f.Add(`{"a":[{"b":1}]}`, `.a[0].b: field not declared in schema`)
	f.Add(`{"a":[{"b":1}]}`, `.a[0]: field not declared in schema`)
	f.Add(`{"a":[{"b":1}]}`, `.a[-1].b: field not declared in schema`)
	f.Add(`{"a":{"b":1}}`, `.a[name="x"]: duplicate entries for key []`)
	f.Add(`{"a":{"":1}}`, `.a..: field not declared in schema`)
	f.Fuzz(func(t *testing.T, text, refusal string) {
		object := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &object.Object) != nil || object.Object == nil {
			t.Skip()
		}
		// Each field and item can be removed only once.
		for range len(text) + 1 {
			if len(normalize(object, refusal)) == 0 {
				return
			}
		}
		t.Errorf("normalize of %s does not end for error %s", text, refusal)
	})
}

func TestParsePath_Formats(t *testing.T) {
	for text, want := range map[string][]segment{
		".spec":            {{field: "spec"}},
		".spec.a-b":        {{field: "spec"}, {field: "a-b"}},
		`.a[name="x"].b`:   {{field: "a"}, {key: map[string]any{"name": "x"}}, {field: "b"}},
		`.a[p=80,q="TCP"]`: {{field: "a"}, {key: map[string]any{"p": float64(80), "q": "TCP"}}},
		".a[12].b":         {{field: "a"}, {index: 12}, {field: "b"}},
		".a[0][1]":         {{field: "a"}, {index: 0}, {index: 1}},
		"":                 nil,
		"spec":             nil,
		".a[x]":            nil,
		".a[0":             nil,
		`.a[name="x"]b`:    nil,
	} {
		got, ok := parsePath(text)
		if ok != (want != nil) {
			t.Errorf("%s: parsed: %v", text, ok)
			continue
		}
		if !slices.EqualFunc(got, want, func(a, b segment) bool { return cmp.Equal(a, b, cmp.AllowUnexported(segment{})) }) && ok {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
