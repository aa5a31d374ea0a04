package render

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestFiles_LimitsTime(t *testing.T) {
	limits := Defaults()
	limits.Time = 300 * time.Millisecond
	_, err := one(t, New(limits), `{{ range 10000 }}{{ htpasswd "a" "b" }}{{ end }}`, nil)
	if limit := (*LimitError)(nil); !errors.As(err, &limit) || !strings.Contains(err.Error(), "the render takes longer than 300ms") {
		t.Errorf("got error %v", err)
	}
}

func TestFiles_EndsWithContext(t *testing.T) {
	limits := Defaults()
	limits.Steps = 1 << 60
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the operator stops")
	set, err := Parse([]File{{Name: "web/templates/endless.yaml", Text: "{{ lookup `v1` `Pod` `` `` }}{{ range 1000000000000000 }}{{ end }}"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(string, string, string, string) (map[string]any, error) {
		cancel(stopped)
		return nil, nil
	}
	if _, err := New(limits).Files(ctx, set, func(string) any { return nil }, Options{Lookup: lookup}); !errors.Is(err, stopped) {
		t.Errorf("got error %v, want %v", err, stopped)
	}
}

// A second large render must wait, and small renders must not.
func TestFiles_OneLargeRenderAtATime(t *testing.T) {
	limits := Defaults()
	// The steps decide which render is large, on a slow machine, too.
	limits.Time, limits.LargeTime = time.Hour, time.Hour
	renderer := New(limits)
	set, err := Parse([]File{{Name: "web/templates/large.yaml", Text: "{{ range 90000 }}{{ end }}{{ lookup `v1` `Pod` `` `` }}{{ range 90000 }}{{ end }}done"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	halfway, done := make(chan struct{}), make(chan error, 1)
	lent, resumed := make(chan struct{}), make(chan struct{})
	lend := func() func() {
		close(lent)
		return func() {
			if len(renderer.largeLock) > 0 {
				t.Error("the render acquires a slot while it is the large render")
			}
			close(resumed)
		}
	}
	renderer.largeLock <- struct{}{}
	go func() {
		files, err := renderer.Files(t.Context(), set, func(string) any { return nil }, Options{Lookup: func(string, string, string, string) (map[string]any, error) {
			close(halfway)
			return nil, nil
		}, Lend: lend})
		if err == nil && !strings.HasSuffix(files["web/templates/large.yaml"], "done") {
			err = errors.New("the output is incomplete")
		}
		done <- err
	}()
	<-halfway
	for range 1000 {
		if text, err := one(t, renderer, "{{ upper `small` }}", nil); err != nil || text != "SMALL" {
			t.Fatalf("small render: %q, %v", text, err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("a large render did not wait: %v", err)
	default:
	}
	// The waiting render must have released its slot.
	<-lent
	select {
	case <-resumed:
		t.Error("the render acquired a slot while it was waiting")
	default:
	}
	<-renderer.largeLock
	<-resumed
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(renderer.largeLock) > 0 {
		t.Fatal("a finished render still holds the lock of the large render")
	}
	// A waiting render must end with its context.
	renderer.largeLock <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := renderer.Files(ctx, set, func(string) any { return nil }, Options{Lookup: func(string, string, string, string) (map[string]any, error) {
		cancel()
		return nil, nil
	}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}

func TestFiles_LimitsApplyPerRender(t *testing.T) {
	limits := Defaults()
	limits.Steps = 1000
	renderer := New(limits)
	for range 10 {
		if _, err := one(t, renderer, "{{ range 900 }}{{ end }}", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := one(t, renderer, "{{ range 1100 }}{{ end }}", nil); err == nil {
			t.Fatal("the render exceeded the limit without an error")
		}
	}
}

// The result of one lookup may be large, but the results of all lookups count.
func TestFiles_CountsLookups(t *testing.T) {
	list := map[string]any{"items": []any{strings.Repeat("x", 20<<20)}}
	lookup := func(string, string, string, string) (map[string]any, error) { return list, nil }
	renderer := New(Defaults())
	for text, want := range map[string]string{
		"{{ len (lookup `v1` `Pod` `` ``).items }}":                      "",
		"{{ range 100 }}{{ $_ := lookup `v1` `Pod` `` `` }}{{ end }}":    "128 MiB of memory",
		"{{ range 100 }}{{ toYaml (lookup `v1` `Pod` `` ``) }}{{ end }}": "toYaml creates or reads",
	} {
		set, err := Parse([]File{{Name: "web/templates/lookup.yaml", Text: text}}, false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = renderer.Files(t.Context(), set, func(string) any { return nil }, Options{Lookup: lookup})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got error %v, want %q", text, err, want)
		}
	}
}

// Template text in a custom resource must not read the cluster with the operator's
// permissions, neither directly nor by including a template of the chart.
func TestTpl_LooksUpOnlyWhereAllowed(t *testing.T) {
	const chart = `{{ define "password" }}{{ (lookup "v1" "Secret" "" .).password }}{{ end }}{{ (lookup "v1" "Secret" "" "db").password }}/{{ tpl .text . }}/{{ include "password" "db" }}`
	found := Options{Lookup: func(_, _, _, name string) (map[string]any, error) {
		return map[string]any{"password": "of " + name}, nil
	}}
	allowed, ofChart := found, found
	allowed.InValues = true
	ofChart.OfChart = func(text string) bool { return strings.HasPrefix(text, "{{/* a file */}}") }
	const look = `{{ (lookup "v1" "Secret" "" "db").password }}`
	for _, test := range []struct {
		name, text string
		options    Options
		want       string
	}{
		{"a text with lookup", look, found, ""},
		{"a text that includes a template with lookup", `{{ include "password" "db" }}{{ template "password" "db" }}`, found, ""},
		{"a nested text", `{{ tpl "` + strings.ReplaceAll(look, `"`, `\"`) + `" . }}`, found, ""},
		{"a text with lookupInValues", look, allowed, "of db"},
		{"a file of the chart", "{{/* a file */}}" + look, ofChart, "of db"},
		{"a text in a file of the chart", "{{/* a file */}}{{ tpl .inner . }}", ofChart, ""},
		{"a file of the chart in a text", `{{ tpl .file . }}`, ofChart, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			set, err := Parse([]File{{Name: "web/templates/a.yaml", Text: chart}}, false)
			if err != nil {
				t.Fatal(err)
			}
			dot := map[string]any{"text": test.text, "inner": look, "file": "{{/* a file */}}" + look}
			files, err := New(Defaults()).Files(t.Context(), set, func(string) any { return dot }, test.options)
			if want := "of db/" + test.want + "/of db"; err != nil || files["web/templates/a.yaml"] != want {
				t.Errorf("got %q, error %v; want %q", files["web/templates/a.yaml"], err, want)
			}
		})
	}
}
