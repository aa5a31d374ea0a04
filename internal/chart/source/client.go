package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// client makes the HTTP requests of one Fetch, within its limits.
type client struct {
	http.Client
	options Options
	// host is the host to which credentials are sent.
	host string
	// plain is the host that Options.PlainHTTP is for.
	plain string
	// oci is set if the host is an OCI registry.
	oci bool
	// stored is set if credentials of the user's files were sent.
	stored *atomic.Bool
}

// newClient returns the client for a context and for the host of a reference. The context
// ends all requests, also those of Helm's registry client, which accepts no context.
func newClient(ctx context.Context, o Options, host string) (*client, error) {
	t := &transport{ctx: ctx, host: host, limit: o.MaxBytes}
	t.left.Store(o.MaxBytes)
	var err error
	if t.own, err = newTransport(o, true); err != nil {
		return nil, err
	}
	if t.others, err = newTransport(o, false); err != nil {
		return nil, err
	}
	return &client{Client: http.Client{Transport: t, CheckRedirect: checkRedirect(o, host)}, options: o, host: host, plain: host, stored: &atomic.Bool{}}, nil
}

func newTransport(o Options, own bool) (*http.Transport, error) {
	config, err := o.tls(own)
	if err != nil {
		return nil, err
	}
	dialer := newDialer(o)
	return &http.Transport{
		Proxy:                  dialer.proxy,
		DialContext:            dialer.dial,
		TLSClientConfig:        config,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
		MaxResponseHeaderBytes: 1 << 20,
		IdleConnTimeout:        10 * time.Second,
	}, nil
}

// redirectError is the error for a redirect that is not followed.
type redirectError struct{ message string }

func (e *redirectError) Error() string { return e.message }

// checkRedirect returns the policy for redirects. The standard library sends credentials
// also to subdomains, to other ports, and over plain HTTP.
func checkRedirect(o Options, host string) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		first := via[0].URL
		switch {
		case len(via) > o.MaxRedirects:
			return &redirectError{fmt.Sprintf("more than %d redirects", o.MaxRedirects)}
		case r.URL.Scheme != "https" && r.URL.Scheme != "http":
			return &redirectError{fmt.Sprintf("a redirect to the scheme %s", r.URL.Scheme)}
		case r.URL.Scheme == "http" && first.Scheme == "https" && !o.plainHTTP(r.URL.Host, host):
			return &redirectError{"a redirect from https to http"}
		}
		// The redirect may contain credentials for the other host.
		r.URL.User = nil
		if r.URL.Scheme != first.Scheme || !strings.EqualFold(withPort(r.URL), withPort(first)) {
			r.Header.Del("Authorization")
			r.Header.Del("Cookie")
		}
		return nil
	}
}

// transport limits the time and the bytes of all requests together.
type transport struct {
	ctx  context.Context //nolint:containedctx // the transport belongs to one Fetch
	host string
	// own has the client certificate, and is for the host only.
	own, others *http.Transport
	limit       int64
	left        atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	end := func() {
		stop()
		cancel(nil)
	}
	next := t.others
	if strings.EqualFold(r.URL.Host, t.host) {
		next = t.own
	}
	r = r.WithContext(ctx)
	if r.Header.Get("User-Agent") == "" {
		r = r.Clone(ctx)
		r.Header.Set("User-Agent", "chartwright/"+api.BuildInfo().Version)
	}
	response, err := next.RoundTrip(r)
	if err != nil {
		end()
		if t.ctx.Err() != nil {
			err = context.Cause(t.ctx)
		}
		return nil, err
	}
	if response.ContentLength > t.left.Load() && r.Method != http.MethodHead {
		end()
		return nil, errors.Join(&SizeError{Limit: t.limit}, response.Body.Close())
	}
	response.Body = &body{ReadCloser: response.Body, transport: t, end: end}
	return response, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (t *transport) CloseIdleConnections() {
	t.own.CloseIdleConnections()
	t.others.CloseIdleConnections()
}

// SizeError is the error for downloads that exceed the limit.
type SizeError struct{ Limit int64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the download exceeds %d bytes", e.Limit)
}

// body is the body of a response, within the limit of all responses.
type body struct {
	io.ReadCloser
	transport *transport
	end       func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.transport.left.Add(-int64(n)) < 0 {
		return 0, &SizeError{Limit: b.transport.limit}
	}
	if err != nil && !errors.Is(err, io.EOF) && b.transport.ctx.Err() != nil {
		err = context.Cause(b.transport.ctx)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// statusError is the error for a response without a file.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d %s", e.code, http.StatusText(e.code)))
}

// plainHTTP reports whether HTTP is allowed for a host.
func (c *client) plainHTTP(host string) bool { return c.options.plainHTTP(host, c.plain) }

// plainHTTP reports whether HTTP is allowed for a host, with the host of the reference.
func (o Options) plainHTTP(host, own string) bool {
	return o.PlainHTTP && strings.EqualFold(host, own)
}

// get downloads a file. It sends the credentials only to their host.
func (c *client) get(ctx context.Context, url string) ([]byte, error) {
	return c.getLimited(ctx, url, c.options.MaxBytes)
}

// getLimited is get with another limit for the size of the file.
func (c *client) getLimited(ctx context.Context, url string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if c.options.withCredentials() && (c.options.PassCredentials || strings.EqualFold(request.URL.Host, c.host)) {
		if request.URL.Scheme != "https" && !c.plainHTTP(request.URL.Host) {
			return nil, errPlainCredentials
		}
		request.SetBasicAuth(c.options.Username, c.options.Password)
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{response.StatusCode}
	}
	if response.ContentLength > limit {
		return nil, &SizeError{Limit: limit}
	}
	if err := c.options.BeforeDownload(ctx); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, &SizeError{Limit: limit}
	}
	return data, err
}

// errPlainCredentials is the error for credentials that would be sent unencrypted.
var errPlainCredentials = errors.New("credentials are not sent over plain HTTP")
