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

// Proxy stands between operators and the API server, see Options.Proxy. It
// hands on what they ask, in their own name, and by a Plan refuses, loses or
// delays some of it; by a Trap it ends an operator at a certain write. It is
// reached over loopback alone.
type Proxy struct {
	env      *Env
	server   *httptest.Server
	upstream http.RoundTripper

	mu     sync.Mutex
	faults *dice
	trap   *Trap
	counts map[Fault]int
	// watches is how many have begun since Cut was last called.
	watches int
}

// NewProxy starts a proxy that hands on everything. It ends with the test.
func (e *Env) NewProxy() *Proxy {
	e.t.Helper()
	target, err := url.Parse(shared.config.Host)
	e.must(err)
	trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(shared.config))
	e.must(err)
	p := &Proxy{
		env: e,
		// The operator decompresses, if it likes.
		upstream: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableCompression: true},
		counts:   map[Fault]int{},
	}
	p.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: p,
		// What a watch sends is handed on at once.
		FlushInterval: -1,
		// The connection is what is lost: there is no answer to tell of it.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     discard,
	})
	p.server.Config.ErrorLog = discard
	// Where one request has a connection to itself, one can be lost alone.
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	p.server.StartTLS()
	e.cleanup(func(context.Context) error {
		p.server.CloseClientConnections()
		p.server.Close()
		return nil
	})
	return p
}

// redirect makes a kubeconfig lead to the proxy. Its credentials stay.
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

// RoundTrip hands on one request, or does to it what is planned.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	call, err := readCall(r)
	if err != nil {
		return nil, err
	}
	trap, number := p.step(call)
	if trap.springs(number, BeforeWrite) {
		trap.spring(call)
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
	case Conflict, TooManyRequests, InternalError, Unavailable:
		return fault.answer(r), nil
	}
	response, err := p.upstream.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	lost := fault == Lose
	if trap.springs(number, AfterWrite) {
		trap.spring(call)
		lost = true
	}
	if lost {
		_ = response.Body.Close()
		return nil, errLost
	}
	if call.Watch {
		p.mu.Lock()
		p.watches++
		p.mu.Unlock()
	}
	return response, nil
}

// Watches returns how many watches have begun since the connections were last
// cut.
func (p *Proxy) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watches
}

// Cut breaks all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.watches = 0
	p.mu.Unlock()
	p.server.CloseClientConnections()
}
