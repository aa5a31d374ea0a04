package harness

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are below the range that systems use for outgoing connections. Each
// port is used only once, so that nothing else takes it before the operator
// listens on it.
const (
	firstPort = 12000
	lastPort  = 19000
)

var takenPorts sync.Map

// freeAddress returns an unused loopback address.
func (e *Env) freeAddress() string {
	e.t.Helper()
	var listen net.ListenConfig
	for range lastPort - firstPort {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if _, taken := takenPorts.LoadOrStore(address, true); taken {
			continue
		}
		listener, err := listen.Listen(e.t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		e.must(listener.Close())
		return address
	}
	e.t.Fatal("no free port")
	return ""
}
