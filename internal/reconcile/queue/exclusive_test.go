package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestExclusive_AdmitsOneAndLendsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, lent := NewPool(1, true, time.Now, nil), 0
		lend := func() func() {
			lent++
			return func() { lent-- }
		}
		lendBoth, end, err := pool.Exclusive(t.Context(), lend)
		if err != nil || lent != 0 {
			t.Fatalf("%v, %d slots lent", err, lent)
		}
		second := make(chan func(), 1)
		go func() {
			_, end, err := pool.Exclusive(t.Context(), lend)
			if err != nil {
				t.Error(err)
			}
			second <- end
		}()
		synctest.Wait()
		if len(second) > 0 || lent != 1 {
			t.Fatalf("a second large action runs, or its slot is not lent: %d", lent)
		}
		back := lendBoth()
		synctest.Wait()
		if len(second) != 1 {
			t.Fatal("no second large action runs while the first waits for a hook")
		}
		(<-second)()
		back()
		end()
		if lent != 0 || len(pool.large) != 0 {
			t.Errorf("%d slots lent, %d exclusive accesses held", lent, len(pool.large))
		}
	})
}

func TestExclusive_EndsWithTheContext(t *testing.T) {
	pool := NewPool(1, true, time.Now, nil)
	pool.large <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := pool.Exclusive(ctx, func() func() { return func() {} }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
