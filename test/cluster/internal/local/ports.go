package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// loopback is the address on which components listen. Only the API server of a
// real node has another address.
const loopback = "127.0.0.1"

// Ports are below the range that systems use for outgoing connections, so that
// nothing else takes a port before its component listens on it.
const (
	firstPort = 20000
	lastPort  = 32000
)

// reservation holds a port until its component starts.
type reservation struct {
	listener net.Listener
	host     string
	port     int
}

// reserve reserves the wanted port, or a free port for 0.
func reserve(ctx context.Context, host string, wanted int) (*reservation, error) {
	var listen net.ListenConfig
	if wanted != 0 {
		listener, err := listen.Listen(ctx, "tcp", joinAddress(host, wanted))
		if err != nil {
			return nil, fmt.Errorf("port %d is in use: choose another with --port, or omit --port for a free port: %w", wanted, err)
		}
		return &reservation{listener, host, wanted}, nil
	}
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := listen.Listen(ctx, "tcp", joinAddress(host, port))
		if err == nil {
			return &reservation{listener, host, port}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("cannot listen on %s: %w", joinAddress(host, port), err)
		}
	}
	return nil, fmt.Errorf("no free port between %d and %d on %s", firstPort, lastPort, host)
}

// release releases the port, so that the component can listen on it.
func (r *reservation) release() { _ = r.listener.Close() }

// address returns the host and the port.
func (r *reservation) address() string { return joinAddress(r.host, r.port) }

func address(port int) string { return joinAddress(loopback, port) }

func joinAddress(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
