package operator

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/inputs/observed"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/leader"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/testenv"
)

// countWatches returns a configuration with which each watch of a resource counts as open until
// its informer ends.
func countWatches(config *rest.Config, resource string) (counted *rest.Config, open *atomic.Int32) {
	open = &atomic.Int32{}
	counted = rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return leader.RoundTripFunc(func(request *http.Request) (*http.Response, error) {
			if strings.HasSuffix(request.URL.Path, "/"+resource) && request.URL.Query().Has("watch") {
				open.Add(1)
				go func() {
					<-request.Context().Done()
					open.Add(-1)
				}()
			}
			return next.RoundTrip(request)
		})
	})
	return counted, open
}

// expectOpen waits until a number of watches is open.
func expectOpen(t *testing.T, open *atomic.Int32, want int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return open.Load() == want, nil }); err != nil {
		t.Errorf("%d watches are open, want %d", open.Load(), want)
	}
}

// TestSharedWatches_EndWithoutUsers: a watch that no kind needs ends, and its objects are dropped.
func TestSharedWatches_EndWithoutUsers(t *testing.T) {
	config, open := countWatches(testenv.Shared(t).Config, "configmaps")
	d := newDependent(t, config, configMaps)
	d.create(&corev1.ConfigMap{ObjectMeta: objectMeta("object")})
	d.dependsOn(configMaps, "object")
	d.startKind(d.ctx, appKind)
	d.expectWaits("")
	d.endUnused([]catalog.Kind{appKind})
	if open.Load() == 0 {
		t.Error("the watch of a kind that needs it has ended")
	}
	d.endUnused(nil)
	d.expectWaits("the objects are not listed yet")
	expectOpen(t, open, 0)
	d.startKind(d.ctx, appKind)
	d.expectWaits("")
}

// TestKinds_ReplacedKindEndsWatches replaces a kind whose status reads other objects each time.
func TestKinds_ReplacedKindEndsWatches(t *testing.T) {
	env := testenv.Start(t)
	l := newLeaves(t, env.Config)
	config, open := countWatches(env.Config, "podtemplates")
	observing := func(round int) catalog.Kind {
		kind := leafOf(t, fmt.Sprintf("1.0.%d", round), "")
		if round > 0 {
			labels := map[string]string{"round": strconv.Itoa(round)}
			kind.Observes = []catalog.Observe{{Watch: observed.NewWatch(corev1.SchemeGroupVersion.WithKind("PodTemplate"), labels, nil)}}
		}
		return kind
	}
	options := Defaults()
	options.Kinds = []catalog.Kind{observing(1)}
	options.set = kindset.New(nil)
	ctx, registry, _ := runningWith(t, config, options)
	l.create("one")
	for round := 1; round <= 4; round++ {
		options.set.Put(kindset.Folder, "leaf", observing(round))
		l.waitData("one", "version", fmt.Sprintf("1.0.%d", round))
		expectOpen(t, open, 1)
	}
	options.set.Put(kindset.Folder, "leaf", observing(0))
	l.waitData("one", "version", "1.0.0")
	expectOpen(t, open, 0)
	waitState(ctx, t, registry, leafKind, readiness.Serving)
}
