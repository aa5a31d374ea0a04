package chart

import (
	"strings"
	"testing"
)

// TestSeparated: a document with two objects is an error, and other documents are not.
func TestSeparated(t *testing.T) {
	t.Parallel()
	const one = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n"
	for name, test := range map[string]struct{ text, want string }{
		"two objects":                {one + one, "line 5 "},
		"two objects at the end":     {"# first\n---\n" + one + "--- # next\n\n" + one + one, "line 13 "},
		"two objects at the start":   {"---\n" + one + one + "---\n" + one, "line 6 "},
		"CRLF":                       {strings.ReplaceAll(one+one, "\n", "\r\n"), "line 5 "},
		"separated":                  {one + "---\n" + one, ""},
		"a separator with text":      {one + "---" + one, ""},
		"a text that looks like one": {one + "data:\n  a: \"\napiVersion: v1\n\"\n", ""},
		"a block":                    {one + "data:\n  a: |\n    apiVersion: v1\n    apiVersion: v2\n", ""},
		"other keys twice":           {one + "data: {a: b}\ndata: {c: d}\n", ""},
		"not YAML":                   {one + "a: [\n" + one, ""},
		"a list":                     {"- a\n- b\n---\n" + one + "---\n" + one, ""},
		"nothing":                    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := separated(test.text)
			if got := err != nil; got != (test.want != "") || got && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
