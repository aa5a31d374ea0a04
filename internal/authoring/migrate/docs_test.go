package migrate_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocs: the page has the differences that the command tells.
func TestDocs(t *testing.T) {
	var want strings.Builder
	want.WriteString("| | the operator-sdk | Chartwright | what to do |\n|---|---|---|---|\n")
	for _, b := range migrate.Behaviors() {
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", b.What, b.Was, b.Is, cmp.Or(b.Do, "nothing"))
	}
	testenv.Part(t, "migrating-from-operator-sdk.md", "differences", want.String())
}
