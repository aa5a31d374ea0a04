package helm

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

func TestBuild_ParsesLargeManifestsOneAtATime(t *testing.T) {
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\nx: [" + strings.Repeat("1,", largeManifest) + "1]\n"
	var other parsePermit
	if err := other.acquire(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped while it waited")
	cancel(stopped)
	waiting := &builder{ctx: ctx, built: map[string]engine.ResourceList{}}
	if _, err := waiting.parse(large); !errors.Is(err, stopped) {
		t.Errorf("while another large manifest is parsed, parse returns %v", err)
	}
	if err := waiting.permit.acquire(ctx, "a: 1\n"); err != nil || waiting.permit.held {
		t.Errorf("a small manifest waits: %v", err)
	}
	other.release()
	if err := waiting.permit.acquire(t.Context(), large); err != nil || !waiting.permit.held {
		t.Errorf("after the other action ended, acquire returns %v", err)
	}
	waiting.permit.release()
	other.release()
	if len(largeManifests) != 0 {
		t.Error("the permit was not released")
	}
}
