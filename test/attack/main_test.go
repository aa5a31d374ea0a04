package attack

import (
	"os"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestMain always starts its own cluster, because the attacks store hundreds of
// megabytes in it.
func TestMain(m *testing.M) {
	if err := os.Unsetenv("CHARTWRIGHT_CLUSTER"); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}
