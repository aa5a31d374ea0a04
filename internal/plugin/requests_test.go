package plugin

import "testing"

func TestCheckRollbackTo_AcceptsRevisionsOnly(t *testing.T) {
	for _, to := range []string{"1", "12", "previous"} {
		if err := checkRollbackTo(to); err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, to := range []string{"0", "-1", "two", "", "none", "2@again", "latest"} {
		if checkRollbackTo(to) == nil {
			t.Errorf("%q is accepted", to)
		}
	}
}
