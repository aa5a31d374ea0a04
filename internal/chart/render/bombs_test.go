package render

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bomb is a template that would take hours, exhaust the memory or terminate the process.
type bomb struct {
	name, text string
	values     map[string]any
	want       string
}

var bombs = []bomb{
	{"a range in a range in a range …", strings.Repeat("{{ range until 1000 }}", 6) + strings.Repeat("{{ end }}", 6), nil, "steps"},
	{"a range over a number", "{{ range 1000000000000 }}{{ end }}", nil, "steps"},
	{"a range that writes", "{{ range 1000000 }}" + strings.Repeat("x", 1000) + "{{ end }}", nil, "writes more than 16 MiB"},
	{"100 MB at once", `{{ repeat 100000000 "x" }}`, nil, "repeat creates or reads more than 16 MiB"},
	{"100 MB in parts", `{{ $x := repeat 1000000 "x" }}{{ range 100 }}{{ $x }}{{ end }}`, nil, "writes more than 16 MiB"},
	{"100 MB that is dropped", `{{ $x := repeat 1000000 "x" }}{{ range 1000 }}{{ $y := upper $x }}{{ end }}`, nil, "128 MiB of memory"},
	{"doubling by print", `{{ $x := "x" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}`, nil, "print creates or reads more than 16 MiB"},
	{"doubling by printf", `{{ $x := "x" }}{{ range 60 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, nil, "printf creates or reads more than 16 MiB"},
	{"a wide printf", `{{ printf (repeat 1000 "%900000d") 1 }}`, nil, "printf creates or reads"},
	{"doubling by cat", `{{ $x := "x" }}{{ range 60 }}{{ $x = cat $x $x }}{{ end }}`, nil, "cat creates or reads"},
	{"doubling by join", `{{ $x := "x" }}{{ range 60 }}{{ $x = join $x (list $x $x $x) }}{{ end }}`, nil, "join creates or reads"},
	{"doubling by replace", `{{ $x := "xx" }}{{ range 60 }}{{ $x = replace "x" $x $x }}{{ end }}`, nil, "replace creates or reads"},
	{"doubling by a regular expression", `{{ $x := "xx" }}{{ range 60 }}{{ $x = regexReplaceAll "x" $x $x }}{{ end }}`, nil, "regexReplaceAll creates or reads"},
	{"doubling by groups of one", `{{ $x := "xx" }}{{ range 60 }}{{ $x = regexReplaceAll "^(.*)$" $x "$1$1$1" }}{{ end }}`, nil, "steps"},
	{"a doubled value, written", `{{ $x := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, nil, "an action creates or reads"},
	{"a doubled value, as YAML", `{{ $x := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}`, nil, "toYaml creates or reads"},
	{"a doubled value, as JSON", `{{ $x := list "x" }}{{ range 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ toJson $x }}`, nil, "toJson creates or reads"},
	{"a doubled value, copied", `{{ $x := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $_ := deepCopy $x }}`, nil, "deepCopy creates or reads"},
	{"a doubled value, quoted", `{{ $x := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ quote $x }}`, nil, "quote creates or reads"},
	{"a doubled value, compared", `{{ $x := list "x" }}{{ $y := list "x" }}{{ range 60 }}{{ $x = list $x $x }}{{ $y = list $y $y }}{{ end }}{{ deepEqual $x $y }}`, nil, "deepEqual creates or reads"},
	{"a recursive value, written", `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $x }}`, nil, "contains itself"},
	{"a recursive value, as YAML", `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}`, nil, "contains itself"},
	{"a recursive value, merged", `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ $y := merge (dict) $x $x }}`, nil, "contains itself"},
	{"until a large number", "{{ until (int .n) }}", map[string]any{"n": int64(10_000_000_000)}, "until creates or reads"},
	{"until a large negative number", "{{ until -1000000000 }}", nil, "until creates or reads"},
	{"steps that overflow", "{{ untilStep 9223372036854775797 9223372036854775807 100 }}", nil, "untilStep got the number"},
	{"a sequence", "{{ seq 1 1 1000000000 }}", nil, "seq creates or reads"},
	{"a large indent", `{{ "x" | nindent 1000000000 }}`, nil, "nindent creates or reads"},
	{"an indent of many lines", `{{ repeat 10000 "\n" | indent 10000 }}`, nil, "indent creates or reads"},
	{"wrapping with a long separator", `{{ wrapWith 1 (repeat 10000 "x") (repeat 10000 "y") }}`, nil, "wrapWith creates or reads"},
	{"a long password", "{{ randAlphaNum 1000000000 }}", nil, "randAlphaNum creates or reads"},
	{"many comparisons", `{{ uniq (until 100000) }}`, nil, "steps"},
	{"tpl of itself", "{{ tpl .x . }}", map[string]any{"x": "{{ tpl .x . }}"}, "more than 1000 deep"},
	{"tpl twice of itself", "{{ tpl .x . }}", map[string]any{"x": `{{ if lt .n 40 }}{{ $next := dict "x" .x "n" (add1 .n) }}{{ tpl .x $next }}{{ tpl .x $next }}{{ end }}`, "n": int64(0)}, "steps"},
	{"include of itself", `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, nil, "more than 1000 deep"},
	{"mutually recursive includes", `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, nil, "more than 1000 deep"},
	{"template of itself", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, nil, "more than 1000 deep"},
	{"exponential template", exponential(`{{ template "%s" . }}`), nil, "steps"},
	{"exponential include", exponential(`{{ include "%s" . }}`), nil, "steps"},
	{"a template of many nested actions", "{{ tpl .x . }}", map[string]any{"x": strings.Repeat("{{ if true }}", 60_000) + strings.Repeat("{{ end }}", 60_000)}, "actions"},
	{"YAML of many values", "{{ fromYaml .x }}", map[string]any{"x": "a: [" + strings.Repeat("[],", 2_000_000) + "]"}, "128 MiB of memory"},
	{"TOML of many brackets", "{{ fromToml .x }}", map[string]any{"x": "a = " + strings.Repeat("[", 100_000)}, "nested brackets"},
	{"manifest of many values", "a: [{{ repeat 2000000 \"[],\" }}]", nil, "lines, keys and list items"},
	{"a dictionary that grows", `{{ $x := dict }}{{ $l := repeat 50000 "x" }}{{ range $i, $_ := until 20000 }}{{ $_ := set $x (print $i) (upper $l) }}{{ end }}`, nil, "128 MiB of memory"},
}

// exponential returns templates that each call the next one twice.
func exponential(call string) string {
	var text strings.Builder
	for name := 'a'; name < 'z'; name++ {
		next := strings.ReplaceAll(call, "%s", string(name+1))
		text.WriteString(`{{ define "` + string(name) + `" }}` + next + next + `{{ end }}`)
	}
	return text.String() + `{{ define "z" }}{{ end }}` + strings.ReplaceAll(call, "%s", "a")
}

// one parses and renders one template.
func one(t testing.TB, renderer *Renderer, text string, values map[string]any) (string, error) {
	t.Helper()
	set, err := Parse([]File{{Name: "web/templates/bomb.yaml", Text: text}}, false)
	if err != nil {
		t.Fatal(err)
	}
	files, err := renderer.Files(t.Context(), set, func(string) any { return values }, Options{})
	return files["web/templates/bomb.yaml"], err
}

func TestFiles_StopsBombs(t *testing.T) {
	limits := Defaults()
	// Fewer steps shorten the test. The time limit must not end the render earlier.
	limits.Steps, limits.Time = 200_000, time.Hour
	renderer := New(limits)
	for _, bomb := range bombs {
		t.Run(bomb.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := one(t, renderer, bomb.text, bomb.values)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			t.Logf("%s, %d MiB allocated, heap %d MiB, stack %d MiB", took, (after.TotalAlloc-before.TotalAlloc)>>20, after.HeapSys>>20, after.StackSys>>20)
			var limit *LimitError
			if !errors.As(err, &limit) || !strings.Contains(err.Error(), bomb.want) || !strings.Contains(err.Error(), "web/templates/bomb.yaml") {
				t.Errorf("got error %.300v, want a LimitError with %q", err, bomb.want)
			}
		})
	}
}
