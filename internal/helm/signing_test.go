package helm

import (
	"errors"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
)

func TestActions_FailWithoutSigningKey(t *testing.T) {
	w := newWorld(t)
	w.helm.config.Keys = &signing.Keys{}
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
	p := &disturbance{}
	w.net.armed.Store(p)
	if err := w.helm.Install(t.Context(), r); err == nil || !strings.Contains(err.Error(), "signing key") {
		t.Errorf("installed without a key: %v", err)
	}
	equal(t, "the writes", 0, len(writes(p.log())))
}

// untrustedBy fails the test unless an action ended because a record is not verified.
func untrustedBy(t *testing.T, err, cause error) {
	t.Helper()
	if !errors.Is(err, release.ErrUntrusted) || !errors.Is(err, cause) {
		t.Errorf("error %v, want ErrUntrusted and %v", err, cause)
	}
}
