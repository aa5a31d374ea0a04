package chart

import (
	"testing"
)

func TestValuesFile_IncludesSubcharts(t *testing.T) {
	const text = "# A greeting\ngreeting: hello # to all\n"
	c := small().
		with("values.yaml", text).
		with("Chart.yaml", small()["Chart.yaml"]+"dependencies: [{name: child, version: 1.0.0, alias: kid}]\n").
		with("charts/child/Chart.yaml", "apiVersion: v2\nname: child\nversion: 1.0.0\n").
		with("charts/child/values.yaml", "# How big\nsize: 1\n").
		with("charts/bare/Chart.yaml", "apiVersion: v2\nname: bare\nversion: 1.0.0\n").
		load(t)
	file := c.ValuesFile()
	if string(file.Data) != text {
		t.Errorf("got data %q, want %q", file.Data, text)
	}
	if kid := file.Subcharts["kid"]; string(kid.Data) != "# How big\nsize: 1\n" || len(file.Subcharts) != 2 || file.Subcharts["bare"].Data != nil {
		t.Errorf("got subcharts %+v", file.Subcharts)
	}
}
