package harness

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy forwards requests of operators and users to the API server, see
// Options.Proxy and User.Through. They keep their credentials. A Plan makes the
// proxy refuse, lose or delay random requests, and a Rule certain requests; a Trap
// calls a function at a certain write. The proxy listens on loopback only.
type Proxy struct {
	env      *Env
	server   *httptest.Server
	upstream http.RoundTripper

	mu     sync.Mutex
	faults *activePlan
	rules  []*activeRule
	trap   *Trap
	counts map[Fault]int
	// watches is the number of watches that began since the last call of Cut.
	watches int
}

// NewProxy starts a proxy that forwards all requests until the test ends.
func (e *Env) NewProxy() *Proxy {
	e.t.Helper()
	target, err := url.Parse(shared.config.Host)
	e.must(err)
	trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(shared.config))
	e.must(err)
	p := &Proxy{
		env: e,
		// Compressed responses are forwarded unchanged.
		upstream: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true},
		counts:   map[Fault]int{},
	}
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: p,
		// Forward each watch event immediately.
		FlushInterval: -1,
		// A lost connection has no response that could report an error.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     discard,
	})
	p.server.Config.ErrorLog = discard
	// Without HTTP/2, concurrent requests have separate connections, so that a single request can be lost.
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	p.server.StartTLS()
	e.cleanup(func(context.Context) error {
		p.server.CloseClientConnections()
		p.server.Close()
		return nil
	})
	return p
}

// redirect points a kubeconfig to the proxy. The credentials remain.
func (p *Proxy) redirect(kubeconfig string) error {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = p.server.URL
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	}
	return clientcmd.WriteToFile(*config, kubeconfig)
}

// RoundTrip forwards a request, or injects a fault.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	call, err := readCall(r)
	if err != nil {
		return nil, err
	}
	trap, number := p.step(call)
	if trap.fires(number, BeforeWrite) {
		trap.fire(call)
		return nil, errLost
	}
	fault := p.roll(call)
	switch fault {
	case Drop:
		return nil, errLost
	case Delay:
		if err := linger(r.Context()); err != nil {
			return nil, err
		}
	case Forbidden, NotFound, Conflict, TooManyRequests, InternalError, Unavailable, GatewayTimeout:
		return fault.answer(r), nil
	}
	response, err := p.upstream.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	lost := fault == Lose
	if trap.fires(number, AfterWrite) {
		trap.fire(call)
		lost = true
	}
	switch {
	case lost:
		_ = response.Body.Close()
		return nil, errLost
	case fault == LateTimeout:
		_ = response.Body.Close()
		return GatewayTimeout.answer(r), nil
	}
	if call.Watch {
		p.mu.Lock()
		p.watches++
		p.mu.Unlock()
	}
	return response, nil
}

// Watches returns the number of watches that began since the last call of Cut.
func (p *Proxy) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watches
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.watches = 0
	p.mu.Unlock()
	p.server.CloseClientConnections()
}
