package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipe is a section of docs/guides/troubleshooting.md.
type recipe struct {
	title string
	calls []call
}

// call is a command of a recipe with its output on the page.
type call struct {
	line    int
	command string
	prints  []string
	// fails reports whether the block is marked "refused".
	fails bool
}

// readRecipes returns the sections of a page that have "console" blocks. In
// these, a command follows "$ " and continues on lines that begin with "> ".
// All other lines are its output.
func readRecipes(page string) []recipe {
	var recipes []recipe
	kind, inside := "", false
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		title, isTitle := strings.CutPrefix(line, "## ")
		switch {
		case isFence:
			inside, kind = !inside, fence
		case !inside && isTitle:
			recipes = append(recipes, recipe{title: title})
		case inside && strings.HasPrefix(kind, "console") && len(recipes) > 0:
			r := &recipes[len(recipes)-1]
			r.add(i+1, line, kind == "console refused")
		}
	}
	return slices.DeleteFunc(recipes, func(r recipe) bool { return len(r.calls) == 0 })
}

func (r *recipe) add(number int, line string, fails bool) {
	if command, ok := strings.CutPrefix(line, "$ "); ok {
		r.calls = append(r.calls, call{line: number, command: command, fails: fails})
		return
	}
	if len(r.calls) == 0 {
		return
	}
	last := &r.calls[len(r.calls)-1]
	if more, ok := strings.CutPrefix(line, "> "); ok {
		last.command += "\n" + more
	} else if strings.TrimSpace(line) != "" {
		last.prints = append(last.prints, line)
	}
}

// varying matches the parts of the output that differ between runs, and maps
// them to placeholders.
var varying = []struct {
	what        *regexp.Regexp
	placeholder string
}{
	// Pods of Deployments and of Jobs come first: the random end of a name can look like an age, as in "web-7c9599d68b-2976s".
	{regexp.MustCompile(`\bweb-[0-9a-f]{6,10}(-[0-9a-z]{5})?\b`), "web-POD"},
	{regexp.MustCompile(`\b(web-(pre|post)-[a-z]+)-[0-9a-z]{5}\b`), "$1-POD"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?`), "TIME"},
	{regexp.MustCompile(`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|[dhms]))+\b`), "AGE"},
	// Number of occurrences.
	{regexp.MustCompile(`AGE \(x\d+ over AGE\)`), "AGE"},
	{regexp.MustCompile(`\b(\d+) times\b`), "N times"},
	// Digests of plans.
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "DIGEST"},
	{regexp.MustCompile(`\s+`), " "},
}

func steady(line string) string {
	for _, v := range varying {
		line = v.what.ReplaceAllString(line, v.placeholder)
	}
	return strings.TrimSpace(line)
}

// missing returns the first line of the page that is not a line of the output
// after the previous lines, or "". "…" matches any lines, or, at the end of a line, the rest of the line.
func missing(prints []string, printed string) string {
	lines := strings.Split(printed, "\n")
	for _, wanted := range prints {
		if strings.TrimSpace(wanted) == "…" {
			continue
		}
		start, cut := strings.CutSuffix(steady(wanted), "…")
		at := slices.IndexFunc(lines, func(line string) bool {
			line = steady(line)
			return line == start || cut && strings.HasPrefix(line, start)
		})
		if at < 0 {
			return wanted
		}
		lines = lines[at+1:]
	}
	return ""
}

func TestReadRecipes(t *testing.T) {
	t.Parallel()
	recipes := readRecipes("# Page\n## None\ntext\n## One\n```console\n$ a 1\nx  y\n\n$ b <<END\n> c\n> END\n```\n```yaml\n$ no\n```\n### Part\n```console refused\n$ d\n```\n")
	if len(recipes) != 1 || recipes[0].title != "One" || len(recipes[0].calls) != 3 {
		t.Fatalf("recipes are %+v", recipes)
	}
	for i, want := range []call{{6, "a 1", []string{"x  y"}, false}, {9, "b <<END\nc\nEND", nil, false}, {18, "d", nil, true}} {
		got := recipes[0].calls[i]
		if got.line != want.line || got.command != want.command || !slices.Equal(got.prints, want.prints) || got.fails != want.fails {
			t.Errorf("call %d is %+v, want %+v", i, got, want)
		}
	}
}

func TestMissingLine(t *testing.T) {
	t.Parallel()
	printed := "NAME   READY   AGE\nweb    True    12s\nweb-7c9599d68b-2976s   Running\nlast: 2026-11-21T10:00:00Z, of web-pre-delete-x2x4z"
	for _, test := range []struct {
		prints []string
		misses string
	}{
		{nil, ""},
		{[]string{"NAME READY AGE", "web True 3m2s"}, ""},
		{[]string{"web True 1s", "NAME READY AGE"}, "NAME READY AGE"},
		{[]string{"web True"}, "web True"},
		{[]string{"web …"}, ""},
		{[]string{"web False 1s"}, "web False 1s"},
		{[]string{"NAME READY AGE", "…", "web-7d9f8c6b5-abcde Running"}, ""},
		{[]string{"last: 2027-01-01T00:00:00Z, of web-pre-delete-aaaaa"}, ""},
		{[]string{"web True 12s", "web True 12s"}, "web True 12s"},
	} {
		if got := missing(test.prints, printed); got != test.misses {
			t.Errorf("missing(%q) = %q, want %q", test.prints, got, test.misses)
		}
	}
}
