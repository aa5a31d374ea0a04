package render

import (
	"strings"
	"testing"
)

func TestReused(t *testing.T) {
	var reused Reused
	renderer := New(Defaults())
	render := func(text string, options Options) string {
		t.Helper()
		set, err := Parse([]File{{Name: "web/templates/a.yaml", Text: text}}, false)
		if err != nil {
			t.Fatal(err)
		}
		files, err := renderer.Files(t.Context(), set, func(string) any { return map[string]any{} }, options)
		if err != nil {
			return err.Error()
		}
		return files["web/templates/a.yaml"]
	}
	const one, other = `{{ (genCA "one" 1).Key }}`, `{{ (genCA "other" 1).Key }}`
	reuse := Options{Reused: &reused}
	first := render(one, reuse)
	if render(one, reuse) != first {
		t.Error("equal calls return different certificates")
	}
	if render(other, reuse) == first {
		t.Error("different calls return the same certificate")
	}
	if render(one, Options{}) == first {
		t.Error("a render without reuse returns an earlier certificate")
	}
	if random := render(`{{ randAlphaNum 20 }}`, reuse); render(`{{ randAlphaNum 20 }}`, reuse) == random {
		t.Error("a fast function returns an earlier result")
	}
	replay := Options{Reused: &Reused{Random: true}}
	const randoms = `{{ randAlphaNum 20 }} {{ randAlphaNum 20 }} {{ (genCA "one" 1).Key }} {{ (genCA "one" 1).Key }}`
	before := render(randoms, replay)
	if again := render(randoms, replay); again != before {
		t.Errorf("got %s, want the results of the first render, %s", again, before)
	}
	if words := strings.Fields(before); words[0] == words[1] {
		t.Error("two equal calls in one render return the same random text")
	}
	for range 2 {
		if got := render(`{{ (buildCustomCert "x" "y").Key }}`, reuse); !strings.Contains(got, "base64") {
			t.Errorf("got %q, want the error of the function", got)
		}
	}
	if n := len(reused.results); n != 2 {
		t.Errorf("got %d results, want 2", n)
	}
}
