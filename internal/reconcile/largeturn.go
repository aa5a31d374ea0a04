package reconcile

import "context"

// largeTurn lets one action at a time work on the values of a large custom
// resource: rendering copies them several times. The zero value is not usable;
// call newLargeTurn.
type largeTurn chan struct{}

func newLargeTurn() largeTurn { return make(largeTurn, 1) }

// take waits for the turn without a slot of the pool, so that only large custom
// resources wait for large ones. It returns how to lend the slot and the turn
// while the action waits for a hook, and how to end the turn.
func (l largeTurn) take(ctx context.Context, lend func() func()) (lendBoth func() func(), end func(), err error) {
	back := lend()
	defer back()
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	lendBoth = func() func() {
		back := lend()
		<-l
		return func() {
			l <- struct{}{}
			back()
		}
	}
	return lendBoth, func() { <-l }, nil
}
