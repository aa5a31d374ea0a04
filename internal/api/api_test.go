package api_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/api"
)

func TestPending_ByStatus(t *testing.T) {
	for status, want := range map[string]bool{
		api.StatusPendingInstall: true, api.StatusPendingUpgrade: true, api.StatusPendingRollback: true,
		api.StatusDeployed: false, api.StatusSuperseded: false, api.StatusFailed: false,
		api.StatusUninstalling: false, api.StatusUninstalled: false, "": false,
	} {
		if got := api.Pending(status); got != want {
			t.Errorf("%q is pending: %v", status, got)
		}
	}
}

// TestKeys_AreQualifiedNames checks keys that the API server must accept.
func TestKeys_AreQualifiedNames(t *testing.T) {
	for _, key := range []string{
		api.Finalizer, api.LabelOwnerUID, api.LabelHookOwnerUID, api.LabelOperator, api.AnnotationOwner, api.AnnotationApplied,
		api.LabelRevision, api.LabelAction, api.LabelInputDigest, api.LabelChartDigest, api.LabelValuesDigest,
	} {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 || !strings.HasPrefix(key, api.Domain+"/") {
			t.Errorf("%q: %v", key, problems)
		}
	}
}
