package chart

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/chartwright/chartwright/internal/chart/render"
)

// The cache key includes the contents of the files, because two subcharts can have the same
// name if the values enable only one of them.
func TestParsed_CachesByContent(t *testing.T) {
	var p parsed
	parse := func(text string) *render.Set {
		set, err := p.set([]render.File{{Name: "web/charts/db/templates/x.yaml", Text: text}}, false)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	if one := parse("one"); parse("other") == one || parse("one") != one {
		t.Error("different files share a set, or equal files have different sets")
	}
}

func TestParsed_LimitsCachedSets(t *testing.T) {
	var p parsed
	for i := range 10 * maxParsed {
		if set, err := p.set([]render.File{{Name: "web/templates/x.yaml", Text: strconv.Itoa(i)}}, false); set == nil || err != nil {
			t.Fatal(set, err)
		}
	}
	if len(p.sets) != maxParsed {
		t.Errorf("got %d cached sets, want %d", len(p.sets), maxParsed)
	}
}

// The function sortAlpha of sprig sorts a list of strings in place, but all renders share
// the metadata of the chart.
func TestRender_DoesNotSortChartMetadata(t *testing.T) {
	c := &Chart{chart: small().with("Chart.yaml", small()["Chart.yaml"]+"keywords: [b, a]\nsources: [d, c]\n").
		with("templates/x.yaml", "{{ sortAlpha .Chart.Keywords }}{{ sortAlpha .Chart.Sources }}").unchecked(t)}
	renderer := render.New(patient())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := renderByPackage(t, renderer, c, map[string]any{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if metadata := c.chart.Metadata; !slices.Equal(metadata.Keywords, []string{"b", "a"}) || !slices.Equal(metadata.Sources, []string{"d", "c"}) {
		t.Errorf("the render changed the metadata to %v and %v", metadata.Keywords, metadata.Sources)
	}
}

// If a chart has two templates with the same path, the last one is rendered, as in Helm.
func TestRender_UsesLastOfDuplicateTemplates(t *testing.T) {
	loaded := small().unchecked(t)
	for _, text := range []string{"one", "other"} {
		loaded.Templates = append(loaded.Templates, small().with("templates/x.yaml", text).unchecked(t).Templates...)
	}
	c := &Chart{chart: loaded}
	want, err := renderByHelm(c, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderByPackage(t, render.New(patient()), c, map[string]any{})
	if err != nil || got["small/templates/x.yaml"] != want["small/templates/x.yaml"] {
		t.Errorf("got %v, error %v; want Helm's %v", got, err, want)
	}
}

// The syntax trees are released after their last use, and parsed again for the next one.
func TestTemplates_ReleasedAfterUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loaded, err := LoadDir(fstest.MapFS{
			"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
			"templates/x.yaml": {Data: []byte("{{ .Values.x }}")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if loaded.templates.files != nil {
			t.Error("a loaded chart holds syntax trees that nothing has used")
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { loaded.Templates() })
		}
		all.Wait()
		first := loaded.Templates()
		time.Sleep(keepParsed - time.Second)
		if again := loaded.Templates(); &again[0] != &first[0] {
			t.Error("templates in use are parsed twice")
		}
		time.Sleep(keepParsed)
		synctest.Wait()
		if loaded.templates.files != nil {
			t.Error("the syntax trees are not released")
		}
		if again := loaded.Templates(); len(again) != 1 || again[0].Text != first[0].Text || again[0].Trees[0].Root.String() != first[0].Trees[0].Root.String() {
			t.Errorf("templates parsed again are %v, want %v", again, first)
		}
		time.Sleep(keepParsed)
	})
}
