package render

import (
	"flag"
	"runtime"
	"testing"
	"time"
)

// FuzzRender checks that a render with any argument of tpl ends and uses a limited amount of
// memory. With -fuzz, it checks the duration, too.
func FuzzRender(f *testing.F) {
	for _, bomb := range bombs {
		f.Add(bomb.text, "x")
	}
	f.Add("{{ .x }}", "{{ tpl .x . }}")
	limits := Defaults()
	limits.Steps, limits.Time = 20_000, 2*time.Second
	renderer := New(limits)
	set, err := Parse([]File{{Name: "web/templates/all.yaml", Text: "{{ tpl .text . }}"}}, false)
	if err != nil {
		f.Fatal(err)
	}
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	f.Fuzz(func(t *testing.T, text, x string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		dot := map[string]any{"text": text, "x": x, "list": []any{"a", int64(1), nil}, "map": map[string]any{"a": "b"}}
		_, _ = renderer.Files(t.Context(), set, func(string) any { return dot }, Options{})
		if took := time.Since(began); fuzzing && took > 20*time.Second {
			t.Errorf("the render took %s", took)
		}
		runtime.ReadMemStats(&after)
		if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 2048 {
			t.Errorf("the render allocated %d MiB", mib)
		}
	})
}
