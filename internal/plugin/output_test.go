package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTree(t *testing.T) {
	root := branch{name: "PodSet web", state: "False", paint: red, text: "Progressing", below: []branch{
		{name: "Größe", below: []branch{{name: "a", state: "True"}, {name: "b", text: "waits", below: []branch{{name: "c"}}}}},
		{name: "last", below: []branch{{name: "d"}}},
	}}
	want := strings.TrimPrefix(`
NAME        READY  WHY
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
		"colors": {colors: true, want: strings.Replace(want, "False", "\x1b[31mFalse\x1b[0m", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			out := painter{test.colors}.tree(branch{name: "NAME", state: "READY", text: "WHY"}, root)
			if diff := cmp.Diff(test.want, out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
