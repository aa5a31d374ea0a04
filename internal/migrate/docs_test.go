package migrate_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/migrate"
)

var update = flag.Bool("update", false, "write the differences into docs/migrating-from-operator-sdk.md")

// TestDocs: the page has the differences that the command tells.
func TestDocs(t *testing.T) {
	const begin, end = "-update' -->\n", "<!-- end of differences -->"
	name := filepath.Join("..", "..", "docs", "migrating-from-operator-sdk.md")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(data), begin)
	got, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the differences", name)
	}
	var want strings.Builder
	want.WriteString("| | the operator-sdk | Chartwright | what to do |\n|---|---|---|---|\n")
	for _, b := range migrate.Behaviors() {
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", b.What, b.Was, b.Is, cmp.Or(b.Do, "nothing"))
	}
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want.String(), got); diff != "" {
		t.Errorf("%s is not up to date, run this test with -update (-want +got):\n%s", name, diff)
	}
}
