package customresource

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/testenv"
)

// decode returns a packed custom resource with all its content.
func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	cr, err := Decoder{Scale: []string{"spec", "replicas"}}.decode([]byte(text), maxMetadataBytes)
	if err != nil {
		t.Fatal(err)
	}
	return cr
}

func crText(spec string) string {
	return `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"web","namespace":"apps","generation":3},"spec":` + spec + `}`
}

func TestDecode_KeepsFieldsAsText(t *testing.T) {
	cr := decode(t, `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"web","uid":"u","labels":{"a":"b"},"generation":9007199254740993,`+
		`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","mine":"x"},"ownerReferences":[{"name":"o"}],"managedFields":[{"manager":"m"}]},`+
		`"spec":{"n":1.0,"big":9007199254740993,"list":[{}]},"status":{"state":"Ready"},"data":{"k":"v"},"text":"plain"}`)
	want := map[string]any{
		"apiVersion": "g/v1", "kind": "K",
		"metadata": map[string]any{
			"name": "web", "uid": "u", "labels": map[string]any{"a": "b"}, "generation": int64(9007199254740993),
			"annotations": map[string]any{"mine": "x"}, "ownerReferences": []any{map[string]any{"name": "o"}},
		},
		"spec": `{"n":1.0,"big":9007199254740993,"list":[{}]}`, "status": `{"state":"Ready"}`, "data": `{"k":"v"}`, "text": `"plain"`,
		keyDigest: Digest(cr), keyEdits: `{}`,
	}
	if diff := cmp.Diff(want, cr.Object); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
	object, err := Expand(cr)
	if err != nil {
		t.Fatal(err)
	}
	for key := range want {
		if strings.HasPrefix(key, api.Domain) || key == "status" {
			delete(want, key)
		}
	}
	want["spec"] = map[string]any{"n": 1.0, "big": int64(9007199254740993), "list": []any{map[string]any{}}}
	want["data"], want["text"] = map[string]any{"k": "v"}, "plain"
	if diff := cmp.Diff(want, object); diff != "" {
		t.Errorf("expanded (-want +got):\n%s", diff)
	}
}

func TestDecode_RefusesWhatIsTooLarge(t *testing.T) {
	list := func(count int) string { return `{"a":[` + strings.Repeat("{},", count-1) + "{}]}" }
	for _, test := range []struct {
		name, spec string
		refused    bool
	}{
		{"as many values as are allowed", list(24_998), false},
		{"one value more than is allowed", list(25_001), true},
		{"as many bytes as are allowed", `{"a":"` + strings.Repeat("x", MaxBytes-8) + `"}`, false},
		{"one byte more than is allowed", `{"a":"` + strings.Repeat("x", MaxBytes-7) + `"}`, true},
		{"commas and braces in a text", `{"a":"` + strings.Repeat(",{", 60_000) + `"}`, false},
		{"commas after an escaped quote", `{"a":"\"` + strings.Repeat(",{", 60_000) + `"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cr := decode(t, crText(test.spec))
			_, err := Expand(cr)
			if errors.Is(err, ErrTooLarge) != test.refused || errors.Is(TooLarge(cr), ErrTooLarge) != test.refused {
				t.Errorf("error %v and %v, want one: %v", err, TooLarge(cr), test.refused)
			}
			if kept := cr.Object["spec"] != nil; kept == test.refused {
				t.Errorf("the text is kept: %v", kept)
			}
			if again := decode(t, crText(test.spec)); Digest(again) != Digest(cr) || Digest(cr) == Digest(decode(t, crText(`{}`))) {
				t.Errorf("digest %s, then %s", Digest(cr), Digest(again))
			}
			if cr.GetName() != "web" || cr.GetGeneration() != 3 {
				t.Errorf("metadata %v", cr.Object["metadata"])
			}
		})
	}
	t.Run("other fields count", func(t *testing.T) {
		cr := decode(t, `{"apiVersion":"g/v1","kind":"K","metadata":{},"data":`+list(60_000)+`}`)
		if !errors.Is(TooLarge(cr), ErrTooLarge) || cr.Object["data"] != nil {
			t.Errorf("%v", TooLarge(cr))
		}
	})
}

func TestDecode_BoundsMetadata(t *testing.T) {
	entries := func(format string, count int) string {
		all := make([]string, count)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	const some = 5_000
	for _, test := range []struct {
		name, metadata string
		refused        bool
		want           map[string]any
		all            bool
	}{
		{"labels", `"labels":{` + entries(`"l%d":""`, some) + `}`, true, map[string]any{}, true},
		{"owners", `"ownerReferences":[` + entries(`{"name":"%d"}`, some) + `]`, false, map[string]any{}, true},
		{
			"annotations", `"annotations":{"chartwright.dev/pause":"true",` + entries(`"a%d":""`, some) + `}`, true,
			map[string]any{"annotations": map[string]any{"chartwright.dev/pause": "true"}}, true,
		},
		{
			"finalizers", `"finalizers":["` + api.Finalizer + `","orphan",` + entries(`"a.b/%d"`, some) + `]`, true,
			map[string]any{"finalizers": []any{api.Finalizer, "orphan"}}, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cr := decode(t, `{"apiVersion":"g/v1","kind":"K","metadata":{`+test.metadata+`},"spec":{}}`)
			if errors.Is(TooLarge(cr), ErrTooLarge) != test.refused {
				t.Errorf("error %v", TooLarge(cr))
			}
			if diff := cmp.Diff(test.want, cr.Object["metadata"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if AllFinalizers(cr) != test.all {
				t.Errorf("all finalizers are there: %v", !test.all)
			}
		})
	}
}

// TestDecode_DropsLargeContent: a cache keeps no content above a few kilobytes.
func TestDecode_DropsLargeContent(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		name, metadata, spec string
		partial, large       bool
		kept                 map[string]any
	}{
		{"a small one", `"labels":{"a":"b"}`, `{"a":"` + long(keptBytes-8) + `"}`, false, false, map[string]any{"labels": map[string]any{"a": "b"}}},
		{"a spec", `"labels":{"a":"b"}`, `{"a":"` + long(keptBytes-7) + `"}`, true, false, map[string]any{"labels": map[string]any{"a": "b"}}},
		{"a large spec", ``, `{"a":"` + long(largeBytes) + `"}`, true, true, map[string]any{}},
		{"a spec with many values", ``, `{"a":[` + strings.Repeat("0,", largeValues) + `0]}`, true, true, map[string]any{}},
		{"a large spec with labels", `"labels":{"a":"` + long(keptMetadataBytes) + `"}`, `{"a":"` + long(largeBytes) + `"}`, true, true, map[string]any{}},
		{"labels", `"labels":{"a":"` + long(keptMetadataBytes) + `"}`, `{}`, true, false, map[string]any{}},
		{
			"annotations", `"annotations":{"a":"` + long(keptMetadataBytes) + `","chartwright.dev/pause":"true"}`, `{}`, true, false,
			map[string]any{"annotations": map[string]any{"chartwright.dev/pause": "true"}},
		},
		{
			"finalizers", `"finalizers":["` + long(keptMetadataBytes) + `"` + strings.Repeat(`,"`+api.Finalizer+`"`, 100) + `]`, `{}`, true, false,
			map[string]any{"finalizers": []any{api.Finalizer}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := `{"apiVersion":"g/v1","kind":"K","metadata":{` + test.metadata + `},"spec":` + test.spec + `}`
			cr, err := Decoder{}.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Expand(cr)
			if Partial(cr) != test.partial || errors.Is(err, ErrPartial) != test.partial || (cr.Object["spec"] == nil) != test.partial {
				t.Errorf("partial %v, error %v", Partial(cr), err)
			}
			if diff := cmp.Diff(test.kept, cr.Object["metadata"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			whole := decode(t, text)
			if Large(cr) != test.large || Large(whole) != test.large || Digest(cr) != Digest(whole) || Partial(whole) || !AllFinalizers(whole) {
				t.Errorf("large %v, with all content %v", Large(cr), Large(whole))
			}
		})
	}
}

// TestDecode_BoundsItsOwnAnnotations: a client can set many annotations that the operator
// could need, so that their size is limited, too.
func TestDecode_BoundsItsOwnAnnotations(t *testing.T) {
	cr, err := Decoder{}.Decode([]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"annotations":{"chartwright.dev/pause":"true",` +
		`"chartwright.dev/other":"x","chartwright.dev/upgrade-description":"` + strings.Repeat("x", maxNeededBytes) + `"}},"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := TooLarge(cr); err == nil || !strings.Contains(err.Error(), "the annotations for the operator have 82") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"chartwright.dev/pause": "true"}, cr.GetAnnotations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode_KeepsLittleOfOversizedCustomResources(t *testing.T) {
	text := testenv.Oversized("g/v1", "K", "web", nil, api.AnnotationDependsOn, api.AnnotationUpgradeDescription, api.AnnotationReconcile)
	testenv.ExpectRetained(t, 8<<10, func(int) any {
		cr, err := Decoder{Scale: []string{"spec", "replicas"}}.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		return cr
	})
}

func TestDecode_BoundsStatus(t *testing.T) {
	junk := `"junk":[` + strings.Repeat("{},", 200_000) + `{}]`
	for _, test := range []struct{ name, status, want string }{
		{"none", `null`, ""},
		{"an empty one", `{}`, ""},
		{"a list", `[1]`, ""},
		{"a small one", `{"state":"Ready","junk":[]}`, `{"state":"Ready","junk":[]}`},
		{"a large one", `{"state":"Ready",` + junk + `}`, `{"state":"Ready"}`},
		{"a large field of ours", `{"observedGeneration":4,"conditions":[` + strings.Repeat("{},", 200_000) + `{}]}`, `{"observedGeneration":4}`},
		{
			"a large manifest beside the name of the release", `{"deployedRelease":{"name":"web","manifest":"` + strings.Repeat("x", MaxBytes) + `"}}`,
			`{"deployedRelease":{"manifest":""}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cr := decode(t, `{"apiVersion":"g/v1","kind":"K","metadata":{},"status":`+test.status+`}`)
			if got, _ := cr.Object["status"].(string); got != test.want {
				t.Errorf("%.200s, want %s", got, test.want)
			}
			if err := TooLarge(cr); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpand_GivesWhatWasDecodedBefore compares a packed custom resource with one
// that is decoded to maps at once: the same content, values and digests.
func TestExpand_GivesWhatWasDecodedBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{
			"apiVersion": "g/v1", "kind": "K",
			"metadata": map[string]any{"name": rapid.String().Draw(t, "name"), "labels": map[string]any{"a": rapid.String().Draw(t, "label")}},
			"spec":     anyMap(3).Draw(t, "spec"),
		}
		if rapid.Bool().Draw(t, "has other fields") {
			object["data"] = anyValue(2).Draw(t, "data")
		}
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		plain := &unstructured.Unstructured{}
		if err := plain.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		packed, err := Decoder{}.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		expanded, err := Expand(packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain.Object, expanded); diff != "" {
			t.Fatalf("(-decoded +expanded):\n%s", diff)
		}
		before, err := values.FromSpec(plain.Object)
		if err != nil {
			t.Fatal(err)
		}
		after, err := values.FromSpec(expanded)
		if err != nil {
			t.Fatal(err)
		}
		if values.Digest(before) != values.Digest(after) {
			t.Fatal("the digests of the values differ")
		}
		text, err := json.Marshal(plain.Object)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decoder{}.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		// A number may be written in another way, so that the texts differ.
		later, err := Expand(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expanded, later); diff != "" {
			t.Fatalf("(-packed +packed later):\n%s", diff)
		}
	})
}

func anyMap(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 5)
}

func anyValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e6, 1e6).AsAny(), rapid.Just[any](nil),
	}
	if depth > 0 {
		kinds = append(kinds, anyMap(depth).AsAny(), rapid.SliceOfN(anyValue(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}
