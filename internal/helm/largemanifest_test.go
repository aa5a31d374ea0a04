package helm

import (
	"context"
	"errors"
	"strings"
	"testing"

	helmkube "helm.sh/helm/v3/pkg/kube"
)

func TestBuild_ParsesLargeManifestsOneAtATime(t *testing.T) {
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\nx: [" + strings.Repeat("1,", largeManifest) + "1]\n"
	var other turn
	if err := other.await(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped while it waited")
	cancel(stopped)
	waiting := &builder{ctx: ctx, built: map[string]helmkube.ResourceList{}}
	if _, err := waiting.parse(large); !errors.Is(err, stopped) {
		t.Errorf("beside another large manifest, parse returns %v", err)
	}
	if err := waiting.turn.await(ctx, "a: 1\n"); err != nil || waiting.turn.held {
		t.Errorf("a small manifest waits for a turn: %v", err)
	}
	other.done()
	if err := waiting.turn.await(t.Context(), large); err != nil || !waiting.turn.held {
		t.Errorf("after the other has ended, await returns %v", err)
	}
	waiting.turn.done()
	other.done()
	if len(parsesLarge) != 0 {
		t.Error("a turn is held")
	}
}
