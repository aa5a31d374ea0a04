package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestLargeTurn_IsOneAndLendsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, lent := newLargeTurn(), 0
		lend := func() func() {
			lent++
			return func() { lent-- }
		}
		lendBoth, end, err := turn.take(t.Context(), lend)
		if err != nil || lent != 0 {
			t.Fatalf("%v, %d slots lent", err, lent)
		}
		second := make(chan func(), 1)
		go func() {
			_, end, err := turn.take(t.Context(), lend)
			if err != nil {
				t.Error(err)
			}
			second <- end
		}()
		synctest.Wait()
		if len(second) > 0 || lent != 1 {
			t.Fatalf("another large action runs, or its slot is not lent: %d", lent)
		}
		back := lendBoth()
		synctest.Wait()
		if len(second) != 1 {
			t.Fatal("no other large action runs while the first waits for a hook")
		}
		(<-second)()
		back()
		end()
		if lent != 0 || len(turn) != 0 {
			t.Errorf("%d slots lent, %d turns taken", lent, len(turn))
		}
	})
}

func TestLargeTurn_EndsWithTheContext(t *testing.T) {
	turn := newLargeTurn()
	turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := turn.take(ctx, func() func() { return func() {} }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
