package reconcile

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestFirstApplied_SpreadsOverThePeriod: after a restart, about as many custom
// resources are due in each tenth of the period, and each one at the same time again.
func TestFirstApplied_SpreadsOverThePeriod(t *testing.T) {
	const all = 1000
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	due := map[int]int{}
	for i := range all {
		uid := types.UID("5e4d0c1c-8f6c-4f7a-9f0e-" + strconv.Itoa(i))
		first := firstApplied(uid, now, time.Hour)
		if again := firstApplied(uid, now, time.Hour); !again.Equal(first) {
			t.Fatalf("%s and then %s for the same UID", first, again)
		}
		wait := first.Add(time.Hour).Sub(now)
		if wait <= 0 || wait > time.Hour {
			t.Fatalf("due after %s, want some time within the period", wait)
		}
		due[int(10*(wait-1)/time.Hour)]++
	}
	for tenth := range 10 {
		if n := due[tenth]; n < all/20 || n > all/5 {
			t.Errorf("%d of %d are due in tenth %d of the period", n, all, tenth)
		}
	}
	if first := firstApplied("some", now, 0); !first.Equal(now) {
		t.Errorf("without a period: %s", first)
	}
}

func TestPeriodFloor(t *testing.T) {
	kinds := func(d time.Duration) catalog.Kind {
		return catalog.Kind{Watch: watches.Watch{ReconcilePeriod: &metav1.Duration{Duration: d}}}
	}
	for _, test := range []struct {
		name string
		kind catalog.Kind
		flag time.Duration
		want time.Duration
	}{
		{"no period is set", catalog.Kind{}, 0, 10 * time.Second},
		{"the administrator's period is longer", kinds(time.Minute), 0, 10 * time.Second},
		{"the watches entry has a shorter period", kinds(2 * time.Second), time.Hour, 2 * time.Second},
		{"the flag sets a shorter period", catalog.Kind{}, 3 * time.Second, 3 * time.Second},
		{"the watches entry turns the period off", kinds(0), 3 * time.Second, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{Shared: Shared{ReconcilePeriod: test.flag, MinReconcilePeriod: 10 * time.Second}, Kind: test.kind}
			if got := r.periodFloor(); got != test.want {
				t.Errorf("the floor is %s, want %s", got, test.want)
			}
		})
	}
}
