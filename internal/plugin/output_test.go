package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTree_AlignsColumns(t *testing.T) {
	root := branch{name: "PodSet web", state: "False", paint: red, text: "Progressing", children: []branch{
		{name: "Größe", children: []branch{{name: "a", state: "True"}, {name: "b", text: "waits", children: []branch{{name: "c"}}}}},
		{name: "last", children: []branch{{name: "d"}}},
	}}
	want := strings.TrimPrefix(`
NAME        READY  TEXT
PodSet web  False  Progressing
├─ Größe
│  ├─ a     True
│  └─ b            waits
│     └─ c
└─ last
   └─ d
`, "\n")
	for name, test := range map[string]struct {
		colors bool
		want   string
	}{
		"plain":  {want: want},
		"colors": {colors: true, want: strings.Replace(want, "False", string(red)+"False"+string(unpainted), 1)},
	} {
		t.Run(name, func(t *testing.T) {
			out := painter{test.colors}.tree(branch{name: "NAME", state: "READY", text: "TEXT"}, root)
			if diff := cmp.Diff(test.want, out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
