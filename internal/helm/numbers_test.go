package helm

import (
	"strings"
	"testing"
)

// The numbers of a release and what its chart made of them.
func (w *world) numbers() string {
	w.Helper()
	record := w.newest()
	is := "Helm"
	if record.Integers {
		is = "Integer"
	}
	return strings.Join(append(w.configMaps(), is, record.KeptNumbers), " ")
}

// A release keeps the numbers of its deployed revision while others would change its objects,
// whatever the random functions of the chart return.
func TestNumbers_AreKept(t *testing.T) {
	const differing = `{{ printf "%.0f" .Values.n }}`
	rendering := func(value string) files {
		return small().with("values.yaml", "n: 1\nset: 2\n").
			with("templates/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, annotations: {random: {{ randAlphaNum 20 | quote }}}}\ndata: {value: '"+value+"'}\n")
	}
	tests := []struct {
		name            string
		value, upgraded string
		// before and after are the modes of the watches entry, "!" marks a written one.
		before, after string
		want          string
	}{
		{"equal", `{{ .Values.n }}`, `{{ .Values.n }}`, "Integer", "Helm", "one=80 Helm "},
		{"differing", differing, differing, "Integer", "Helm", "one=%!f(int64=80) Integer ConfigMap one: data.value"},
		{"differing, and written", differing, differing, "Integer", "Helm!", "one=80 Helm "},
		{"differing the other way", differing, differing, "Helm", "Integer", "one=80 Helm ConfigMap one: data.value"},
		{"the chart is corrected", differing, `{{ int .Values.n }}`, "Integer", "Helm", "one=80 Helm "},
		{"only the old numbers can be rendered", `{{ .Values.n }}`, `{{ gt .Values.n 7 }}`, "Integer", "Helm", "one=true Integer all, because the chart cannot be rendered with the other numbers"},
		{"only the new numbers can be rendered", `{{ .Values.n }}`, `{{ gt .Values.n 7.0 }}`, "Integer", "Helm", "one=true Helm "},
		{"overrides are integers in both", `{{ printf "%d" .Values.set }}`, `{{ printf "%d" .Values.set }}`, "Integer", "Helm", "one=3 Helm "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			request := func(chart files, digest, mode string) Request {
				mode, written := strings.CutSuffix(mode, "!")
				r := w.request(chart.load(t), digest, map[string]any{"n": int64(80), "set": int64(3)})
				r.Integers, r.NumbersChosen, r.Overrides = mode == "Integer", written, map[string]any{"set": int64(3)}
				return r
			}
			w.must(w.helm.Install(w.Context(), request(rendering(test.value), "one", test.before)))
			first := w.numbers()
			w.must(w.helm.Upgrade(w.Context(), request(rendering(test.upgraded), "two", test.after)))
			if got := w.numbers(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			w.must(w.helm.Rollback(w.Context(), request(rendering(test.upgraded), "two", test.after), 1))
			if got := w.numbers(); got != first {
				t.Errorf("after a rollback, got %s, want %s", got, first)
			}
		})
	}
}
