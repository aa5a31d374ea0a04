package chart

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/chartwright/chartwright/internal/chart/render"
)

// TestParsedAreKnownByTheirTexts: two subcharts may have one name, of which the
// values turn one off.
func TestParsedAreKnownByTheirTexts(t *testing.T) {
	var p parsed
	of := func(text string) *render.Set {
		set, err := p.set([]render.File{{Name: "web/charts/db/templates/x.yaml", Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	if one := of("one"); of("other") == one || of("one") != one {
		t.Error("a set is taken for another one, or is not known again")
	}
}

// TestParsedAreFew: however many ways there are of turning subcharts on.
func TestParsedAreFew(t *testing.T) {
	var p parsed
	for i := range 10 * maxParsed {
		if set, err := p.set([]render.File{{Name: "web/templates/x.yaml", Text: strconv.Itoa(i)}}); set == nil || err != nil {
			t.Fatal(set, err)
		}
	}
	if len(p.sets) != maxParsed {
		t.Errorf("%d are kept", len(p.sets))
	}
}

// TestTemplateThatSortsTheChart: sprig sorts a list of texts in place, and the
// chart is everybody's.
func TestTemplateThatSortsTheChart(t *testing.T) {
	c := &Chart{chart: small().with("Chart.yaml", small()["Chart.yaml"]+"keywords: [b, a]\nsources: [d, c]\n").
		with("templates/x.yaml", "{{ sortAlpha .Chart.Keywords }}{{ sortAlpha .Chart.Sources }}").unchecked(t)}
	renderer := render.New(render.Defaults())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := byUs(t, renderer, c, map[string]any{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if metadata := c.chart.Metadata; !slices.Equal(metadata.Keywords, []string{"b", "a"}) || !slices.Equal(metadata.Sources, []string{"d", "c"}) {
		t.Errorf("the chart has %v and %v now", metadata.Keywords, metadata.Sources)
	}
}

// TestFileThatIsThereTwice: the last one counts, as by Helm.
func TestFileThatIsThereTwice(t *testing.T) {
	folder := small().unchecked(t)
	for _, text := range []string{"one", "other"} {
		folder.Templates = append(folder.Templates, small().with("templates/x.yaml", text).unchecked(t).Templates...)
	}
	c := &Chart{chart: folder}
	want, err := byHelm(c, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := byUs(t, render.New(render.Defaults()), c, map[string]any{})
	if err != nil || got["small/templates/x.yaml"] != want["small/templates/x.yaml"] {
		t.Errorf("%v, %v; by Helm %v", got, err, want)
	}
}
