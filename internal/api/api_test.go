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

func TestRelease_ByVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"dev": "latest", "0067fda": "latest", "v1.2.3-dirty": "latest", "v1.2.3-4-g0067fda": "latest",
		"v1.2.3-rc.1-4-g0067fda": "latest", "v1.2.4-snapshot.0067fda": "latest", "v0.0.0-20260101000000-0067fda6abcd": "latest",
	} {
		info := api.Info{Version: version}
		if got := info.Release(); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
		if got, want := info.Image(), "ghcr.io/chartwright/chartwright:"+want; got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}
