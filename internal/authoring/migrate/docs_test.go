package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocs compares the page with the differences that the command reports.
func TestDocs(t *testing.T) {
	var want strings.Builder
	want.WriteString("| | operator-sdk | Chartwright | what to do |\n|---|---|---|---|\n")
	for _, b := range behaviors {
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", b.what, b.was, b.is, b.do)
	}
	testenv.Part(t, "guides/migrate-from-operator-sdk.md", "differences", want.String())
}
