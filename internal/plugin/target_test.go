package plugin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		args        string
		more        int
		words, rest []string
		err         string
	}{
		{"podset/web", 0, []string{"podset/web"}, nil, ""},
		{"podset web", 0, []string{"podset", "web"}, nil, ""},
		{"podset/web 2", 1, []string{"podset/web"}, []string{"2"}, ""},
		{"podset web 2", 1, []string{"podset", "web"}, []string{"2"}, ""},
		{"", 1, nil, nil, "expected a custom resource"},
		{"podset", 1, nil, nil, "expected a custom resource"},
		{"podset/web 2 3", 1, nil, nil, `"3" is one word too many`},
		{"podset web 2", 0, nil, nil, `"2" is one word too many`},
	} {
		words, rest, err := split(strings.Fields(test.args), test.more)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q: %v, want %q", test.args, err, test.err)
			}
			continue
		}
		if err != nil || !cmp.Equal(words, test.words) || strings.Join(rest, " ") != strings.Join(test.rest, " ") {
			t.Errorf("%q: %q and %q, %v", test.args, words, rest, err)
		}
	}
}
