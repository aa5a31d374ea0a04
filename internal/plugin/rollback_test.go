package plugin

import (
	"strings"
	"testing"
)

func TestRollbackTo(t *testing.T) {
	for _, to := range []string{"1", "12", "previous"} {
		first, err := rollbackTo(to)
		if err != nil || !strings.HasPrefix(first, to+"@2") {
			t.Errorf("%s: %q, %v", to, first, err)
		}
	}
	for _, to := range []string{"0", "-1", "two", "", "none", "2@again", "latest"} {
		if value, err := rollbackTo(to); err == nil {
			t.Errorf("%q becomes %q", to, value)
		}
	}
}
