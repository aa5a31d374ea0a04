package chartkinds

import (
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
)

func TestRetryDelay(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 7: 5 * time.Minute, 1000: 5 * time.Minute} {
		if got := retryDelay(failures); got != want {
			t.Errorf("after %d failures: got %s, want %s", failures, got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	last := source.Chart{Digest: "sha256:a"}
	for name, test := range map[string]struct {
		s    served
		want string
	}{
		"first pull":        {},
		"served":            {s: served{last: last, lastSpec: "1", current: &version{entry: chartcache.Entry{Spec: "1", Digest: "sha256:a"}}}, want: "sha256:a"},
		"other spec":        {s: served{last: last, lastSpec: "2", current: &version{entry: chartcache.Entry{Spec: "2", Digest: "sha256:a"}}}},
		"not loaded":        {s: served{last: last, lastSpec: "1"}},
		"other chart":       {s: served{last: last, lastSpec: "1", current: &version{entry: chartcache.Entry{Spec: "1", Digest: "sha256:b"}}}},
		"invalid":           {s: served{last: last, lastSpec: "1", lastInvalid: "broken"}, want: "sha256:a"},
		"invalid, new spec": {s: served{last: last, lastSpec: "2", lastInvalid: "broken"}},
	} {
		if got := test.s.known("1"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
