package kindstatus

import (
	"slices"
	"strings"
	"testing"
)

func TestObservedPaths(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		{"observed.pods.map(p, string(p.metadata.name))", "metadata.name"},
		{"observed.pods.map(p, has(p.status.phase) && p.status.phase == 'x', p.spec.a['b/c'])", "spec.a.b/c status.phase"},
		{"size(observed.pods)", ""},
		{"observed.pods.size()", ""},
		{"size(observed.pods.filter(p, !has(p.metadata.deletionTimestamp)))", "metadata.deletionTimestamp"},
		{"observed.pods.filter(p, p.a == 1).map(q, string(q.b)).sort()", "a b"},
		{"observed.pods.filter(p, p.a == 1).filter(p, p.b == 1).map(p, string(p.c))", "a b c"},
		{"observed['pods'].all(p, p.?metadata.labels[?'x'].orValue('') == 'y')", "metadata.labels.x"},
		{"int(observed.pods[0].?status.?replicas.orValue(0))", "status.replicas"},
		{"observed.pods[?0].?a.b.orValue('') == ''", "a.b"},
		{"observed.pods.exists(p, p.list.map(i, i.b).size() > 0)", "list"},
		{"observed.pods.exists(p, p.list[0].b == 'x')", "list"},
		{"cel.bind(names, observed.pods.map(p, string(p.a)), names.sort())", "a"},
		{"observed.pods.exists(p, observed.sets.exists(s, s.b == p.a))", "a"},
		// Whole objects.
		{"observed.pods.map(p, string(p))", "*"},
		{"observed.pods", "*"},
		{"observed.pods.filter(p, p.a == 1)", "* a"},
		{"observed.pods.map(p, {'x': p}).map(q, string(q.x.b))", "*"},
		{"observed.pods.map(p, [p]).map(q, string(q[0].b))", "*"},
		{"observed.pods.map(p, p in observed.pods)", "*"},
		{"(observed.pods + observed.sets).map(p, string(p.a))", "*"},
		{"cel.bind(all, observed.pods, all.map(p, string(p.a)))", "*"},
		{"observed.pods.sortBy(p, string(p.a)).map(p, string(p.b))", "*"},
		{"observed.pods.exists(p, dyn(p).a == 1)", "*"},
		{"observed.pods[0] == observed.sets[0]", "*"},
		{"observed.pods.map(p, [p] + [p]).size()", "*"},
		{"size(observed) > 0 && observed.pods.exists(p, p.a == 1)", "* a"},
		{"observed.map(n, n).exists(n, observed[n].exists(p, p.a == 1))", "*"},
	} {
		fields, problems := Compile(map[string]string{"f": test.expression}, []string{"pods", "sets"})
		if len(problems) > 0 {
			t.Errorf("%s: %v", test.expression, problems)
			continue
		}
		var got []string
		for _, path := range fields.ObservedPaths("pods") {
			if text := strings.Join(path, "."); text == "" {
				got = append(got, "*")
			} else {
				got = append(got, text)
			}
		}
		slices.Sort(got)
		if got := strings.Join(slices.Compact(got), " "); got != test.want {
			t.Errorf("%s reads %q, want %q", test.expression, got, test.want)
		}
	}
}
