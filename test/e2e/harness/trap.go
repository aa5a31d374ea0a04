package harness

import "slices"

// Moment is the moment at which a Trap fires.
type Moment string

// The moments of a write at which an operator can be stopped.
const (
	// BeforeWrite: the request does not reach the server.
	BeforeWrite Moment = "before"
	// AfterWrite: the server has answered, but the operator does not receive
	// the response.
	AfterWrite Moment = "after"
)

// Trap calls a function at one of the writes after it was set.
type Trap struct {
	proxy  *Proxy
	write  int
	moment Moment
	do     func()

	// writes are the writes since the trap was set. fired is closed when do has
	// returned.
	writes []Call
	fired  chan struct{}
	at     Call
}

// Trap sets a trap for the write with this number, counted from 1. A trap with
// number 0 only counts. It replaces the previous trap.
func (p *Proxy) Trap(write int, moment Moment, do func()) *Trap {
	trap := &Trap{proxy: p, write: write, moment: moment, do: do, fired: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = trap
	return trap
}

// Writes returns the writes since the trap was set.
func (t *Trap) Writes() []Call {
	t.proxy.mu.Lock()
	defer t.proxy.mu.Unlock()
	return slices.Clone(t.writes)
}

// Fired returns the write at which the trap fired, if it did.
func (t *Trap) Fired() (Call, bool) {
	select {
	case <-t.fired:
		return t.at, true
	default:
		return Call{}, false
	}
}

// step counts a write, and returns the trap and the number of the write, 0 for
// other requests.
func (p *Proxy) step(call Call) (trap *Trap, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || !call.Write() {
		return nil, 0
	}
	p.trap.writes = append(p.trap.writes, call)
	return p.trap, len(p.trap.writes)
}

func (t *Trap) fires(number int, moment Moment) bool {
	return t != nil && number > 0 && number == t.write && moment == t.moment
}

// fire is called at most once, because each write has a unique number.
func (t *Trap) fire(call Call) {
	t.at = call
	t.do()
	close(t.fired)
}
