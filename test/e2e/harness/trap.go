package harness

import "slices"

// Moment is when a Trap springs.
type Moment string

// The moments of a write at which an operator can end.
const (
	// BeforeWrite: the request never reaches the server.
	BeforeWrite Moment = "before"
	// AfterWrite: the server has answered, and the operator never hears of it.
	AfterWrite Moment = "after"
)

// Trap calls back at one of the writes that come after it was set.
type Trap struct {
	proxy  *Proxy
	write  int
	moment Moment
	do     func()

	// writes are those since, and sprung is closed when do has returned.
	writes []Call
	sprung chan struct{}
	at     Call
}

// Trap sets a trap for the write of that number, counted from now and from 1.
// Number 0 never springs and only counts. It takes the place of the last trap.
func (p *Proxy) Trap(write int, moment Moment, do func()) *Trap {
	trap := &Trap{proxy: p, write: write, moment: moment, do: do, sprung: make(chan struct{})}
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

// Sprung returns the write at which the trap has sprung, once it has.
func (t *Trap) Sprung() (Call, bool) {
	select {
	case <-t.sprung:
		return t.at, true
	default:
		return Call{}, false
	}
}

// step counts a write, and returns the trap with the number that it has there;
// 0 is no write.
func (p *Proxy) step(call Call) (trap *Trap, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trap == nil || !call.Write() {
		return nil, 0
	}
	p.trap.writes = append(p.trap.writes, call)
	return p.trap, len(p.trap.writes)
}

func (t *Trap) springs(number int, moment Moment) bool {
	return t != nil && number > 0 && number == t.write && moment == t.moment
}

// spring is called once, for each write has a number of its own.
func (t *Trap) spring(call Call) {
	t.at = call
	t.do()
	close(t.sprung)
}
