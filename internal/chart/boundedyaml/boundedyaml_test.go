package boundedyaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// bomb returns a YAML text whose anchors each contain ten aliases of the previous anchor.
func bomb(levels int) string {
	var text strings.Builder
	text.WriteString("a0: &a0 [" + strings.Repeat("x, ", 9) + "x]\n")
	for i := range levels {
		fmt.Fprintf(&text, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text.String()
}

func TestAliased_CountsReplacedAliases(t *testing.T) {
	for _, test := range []struct {
		name, text    string
		bytes, values int
	}{
		{"no alias", "a: 1\nb: [2, 3]\n", 0, 0},
		{"an anchor without an alias", "a: &x 1\n", 0, 0},
		{"a scalar", "a: &x 12345\nb: *x\n", 5, 0},
		{"a long scalar with many aliases", "a: &x " + strings.Repeat("y", 1000) + "\nb: [" + strings.Repeat("*x,", 99) + "*x]\n", 100 * 1000, 0},
		{"a list", "a: &x [10, 11]\nb: *x\n", 4, 2},
		{"a key", "a: &x {long: 1}\nb: *x\n", 5, 2},
		{"an alias as a key", "a: &x long\n? *x\n: 1\n", 4, 0},
		{"a merge", "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n", 4, 4},
		{"the second document", "a: 1\n---\na: &x 12345\nb: *x\n", 5, 0},
		{"asterisks and ampersands inside scalars", "run: a && b\nfiles: '*.go *b'\n", 0, 0},
		{"a cron schedule and an unused anchor", "a: &x 1\nb: '*/5 * * * *'\n", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Aliased(test.text)
			if err != nil || got != (Size{Bytes: test.bytes, Values: test.values}) {
				t.Errorf("got %+v, error %v; want %d bytes and %d values", got, err, test.bytes, test.values)
			}
		})
	}
}

func TestAliased_RejectsInvalidYAML(t *testing.T) {
	for _, text := range []string{"a: &x 1\nb: [*x\n", "a: &x [*x\n", "b: *x\na: &x 1\n"} {
		if _, err := Aliased(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: got error %v, want %v", text, err, ErrInvalid)
		}
	}
}

func TestToJSON_RejectsTooLargeYAML(t *testing.T) {
	secret := strings.Repeat("hunter2", 70_000)
	for _, test := range []struct{ name, text, message string }{
		{"a long text", strings.Repeat("x", 5<<20), "more than 4194304 bytes"},
		{"a list of many items", "a: [" + strings.Repeat("{},", 60_000) + "{}]", "more than 50000 lines"},
		{"many aliases of a long scalar", "a: &a " + secret + "\nb: [" + strings.Repeat("*a,", 150_000) + "*a]", "more than 4194304 bytes"},
		{"aliases of aliases", bomb(4), "more than 50000 lines"},
		{"aliases whose number of values overflows an int", bomb(30), "more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ToJSON([]byte(test.text), Source())
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), test.message) {
				t.Fatalf("got error %v, want one with %q", err, test.message)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error contains a part of the text")
			}
		})
	}
}

func TestToJSON_ReplacesAliases(t *testing.T) {
	got, err := ToJSON([]byte("base: &base {a: 1}\nmore:\n  <<: *base\n  b: 2\n"), Source())
	if want := `{"base":{"a":1},"more":{"a":1,"b":2}}`; err != nil || string(got) != want {
		t.Errorf("got %s, error %v; want %s", got, err, want)
	}
}

// The limits of a text also limit its JSON: an escaped byte becomes at most six bytes, and a
// value adds a few characters.
func FuzzToJSON_IsBoundedBySize(f *testing.F) {
	for _, text := range []string{bomb(2), "a: &x 1\nb: *x\n", "a: &x {b: 1}\nc: {<<: *x}\n", "? &a [b]\n: *a\n", "&a a: *a\n", "- &x\n- *x\n- [*x, *x]\n", "a: !!binary aGVsbG8=\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits := Limits{Bytes: 1 << 16, Values: 1 << 12}
		if limits.Check(text) != nil {
			return
		}
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		if len(data) > 8*limits.Bytes+64*limits.Values {
			t.Errorf("%d bytes of YAML became %d bytes of JSON", len(text), len(data))
		}
	})
}

func TestCheckFile_EqualsCheck(t *testing.T) {
	limits := Limits{Bytes: 40, Values: 8}
	for _, text := range []string{
		"a: 1\n", "a: &a b\nc: *a\n", "a: &a [", "a: &a [\nb: *a\n", "# R&D\na: 1\n", strings.Repeat("a", 41), strings.Repeat("\n", 9),
		"a: &a " + strings.Repeat("a", 20) + "\nb: [*a, *a]\n",
	} {
		want, got := limits.Check(text), limits.CheckFile([]byte(text))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
