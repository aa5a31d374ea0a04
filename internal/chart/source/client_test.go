package source

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chartwright/chartwright/internal/testenv"
)

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "1.1.1.1": true, "2606:2800:220:1::1": true, "64:ff9b::5db8:d822": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "100.100.100.200": false, "0.0.0.0": false, "0.1.2.3": false, "255.255.255.255": false, "224.0.0.1": false,
		"240.0.0.1": false, "168.63.129.16": false, "168.63.129.17": true, "192.0.0.192": false, "198.18.0.1": false,
		"::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false,
		"64:ff9b:1::1": false, "2002:7f00:1::": false, "2001:0:1::1": false, "::7f00:1": false, "fec0::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("public(%s) = %v, want %v", address, got, want)
		}
	}
}

// request sends a GET request with a client of the options.
func request(t *testing.T, o Options, target string) ([]byte, error) {
	t.Helper()
	at, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(t.Context(), o.complete(), at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdleConnections()
	return c.get(t.Context(), target)
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func TestClient_PublicOnlyChecksEveryConnection(t *testing.T) {
	reached := false
	inside := serve(t, func(http.ResponseWriter, *http.Request) { reached = true })
	outside := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, http.StatusFound) })
	// The name localhost resolves to a loopback address, as a rebound name does.
	byName := strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)

	for name, target := range map[string]string{"address": inside.URL, "name": byName, "redirect": outside.URL} {
		t.Run(name, func(t *testing.T) {
			_, err := request(t, Options{PublicOnly: true, AllowHosts: []string{strings.TrimPrefix(outside.URL, "http://")}}, target)
			if refused, ok := errors.AsType[*AddressError](err); !ok || !refused.Address.IsLoopback() {
				t.Errorf("GET %s = %v, want an AddressError with the loopback address", target, err)
			}
		})
	}
	if reached {
		t.Error("a request reached the private server")
	}
	for _, allowed := range []string{"LOCALHOST", strings.TrimPrefix(byName, "http://")} {
		if _, err := request(t, Options{PublicOnly: true, AllowHosts: []string{allowed}}, byName); err != nil {
			t.Errorf("with the allowed host %s: %v", allowed, err)
		}
	}
}

func TestDialer_ProxyGetsNoPrivateAddresses(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) {})
	d := newDialer(Options{PublicOnly: true})
	d.environment = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }

	_, err := d.proxy(httptest.NewRequest(http.MethodGet, "https://169.254.169.254/latest", http.NoBody))
	if _, ok := errors.AsType[*AddressError](err); !ok {
		t.Errorf("link-local address: got %v, want an AddressError", err)
	}
	if _, err := d.proxy(httptest.NewRequest(http.MethodGet, "https://example.com/x.tgz", http.NoBody)); err != nil {
		t.Fatal(err)
	}
	conn, err := d.dial(t.Context(), "tcp", strings.TrimPrefix(proxy.URL, "http://"))
	if err != nil {
		t.Fatalf("connect to the proxy of the environment: %v", err)
	}
	_ = conn.Close()
}

func TestClient_LimitsBytesOfAllResponses(t *testing.T) {
	for name, length := range map[string]bool{"with Content-Length": true, "chunked": false} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if !length {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(make([]byte, 600))
			})
			at, _ := url.Parse(server.URL)
			c, err := newClient(t.Context(), Options{MaxBytes: 1000}.complete(), at.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseIdleConnections()
			if _, err := c.get(t.Context(), server.URL); err != nil {
				t.Fatalf("first 600 of 1000 bytes: %v", err)
			}
			_, err = c.get(t.Context(), server.URL)
			if _, ok := errors.AsType[*SizeError](err); !ok {
				t.Errorf("1200 of 1000 bytes: got %v, want a SizeError", err)
			}
		})
	}
}

func TestClient_LimitsRedirects(t *testing.T) {
	requests := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	_, err := request(t, Options{MaxRedirects: 3}, server.URL+"/")
	if err == nil || !strings.Contains(err.Error(), "more than 3 redirects") || requests != 4 {
		t.Errorf("got %v after %d requests, want an error about 3 redirects after 4 requests", err, requests)
	}
}

func TestClient_EndsWithContext(t *testing.T) {
	started := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		close(started)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	c, err := newClient(ctx, Options{}.complete(), "")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-started
		cancel()
	}()
	// Helm's registry client uses another context.
	other, end := context.WithTimeout(context.Background(), testenv.Limit)
	defer end()
	if _, err := c.get(other, server.URL); !errors.Is(err, context.Canceled) || other.Err() != nil {
		t.Errorf("got %v, and the other context %v; want context.Canceled before the other context ends", err, other.Err())
	}
}

func TestFetch_EndsAtTimeout(t *testing.T) {
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := Fetch(t.Context(), Reference{URL: server.URL + "/x.tgz"}, Options{Timeout: 50 * time.Millisecond})
	if reasonOf(err) != ReasonTimeout || !strings.Contains(err.Error(), "did not end within 50ms") {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestClient_SendsCredentialsToOneHostOnly(t *testing.T) {
	var sent []string
	record := func(name string, next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if user, _, ok := r.BasicAuth(); ok {
				sent = append(sent, name+" got "+user)
			}
			next(w, r)
		}
	}
	other := serve(t, record("other", func(http.ResponseWriter, *http.Request) {}))
	own := serve(t, record("own", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }))
	credentials := Options{Username: "me", Password: "s3cret"}

	_, err := request(t, credentials, own.URL)
	if !errors.Is(err, errPlainCredentials) || len(sent) > 0 {
		t.Errorf("over HTTP: sent %q and got %v, want errPlainCredentials", sent, err)
	}
	credentials.PlainHTTP = true
	if _, err := request(t, credentials, own.URL); err != nil {
		t.Fatal(err)
	}
	if want := "own got me"; strings.Join(sent, ", ") != want {
		t.Errorf("%q, want %q", sent, want)
	}
}

func TestCheckRedirect_RefusesDowngrade(t *testing.T) {
	for name, test := range map[string]struct {
		plain bool
		host  string
		want  string
	}{
		"without PlainHTTP":         {host: "example.com", want: "a redirect from https to http"},
		"PlainHTTP of the host":     {plain: true, host: "example.com"},
		"PlainHTTP of another host": {plain: true, host: "other.example.com", want: "a redirect from https to http"},
	} {
		to := httptest.NewRequest(http.MethodGet, "http://example.com/x", http.NoBody)
		to.Header.Set("Authorization", "Basic x")
		from := httptest.NewRequest(http.MethodGet, "https://example.com/x", http.NoBody)
		err := checkRedirect(Options{PlainHTTP: test.plain}.complete(), test.host)(to, []*http.Request{from})
		switch {
		case test.want != "" && (err == nil || err.Error() != test.want):
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		case test.want == "" && (err != nil || to.Header.Get("Authorization") != ""):
			t.Errorf("%s: got %v and the headers %v, want a redirect without credentials", name, err, to.Header)
		}
	}
}

func TestExplain_LookupsHaveFixedTexts(t *testing.T) {
	c, err := newClient(t.Context(), Options{}.complete(), "a.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		err  net.DNSError
		want string
	}{
		{net.DNSError{Name: "a.test", Err: "no such host", IsNotFound: true}, "(no such host)"},
		{net.DNSError{Name: "a.test", Err: "read udp 10.0.0.5:48213->10.96.0.10:53: i/o timeout", IsTimeout: true}, "(the DNS server did not respond in time)"},
		{net.DNSError{Name: "a.test", Err: "read udp 10.0.0.5:48214->10.96.0.10:53: connection refused", IsTemporary: true}, "(the DNS server cannot be reached)"},
	} {
		if got := c.explain("a.test", &test.err).Message; got != "no address was found for the host a.test "+test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestRedact(t *testing.T) {
	got := redact(`GET "https://me:pw@example.com/x.tgz?X-Signature=abc": failed at http://y/z?t=1 now`)
	if want := `GET "https://example.com/x.tgz": failed at http://y/z now`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// reasonOf returns the reason of an error of Fetch.
func reasonOf(err error) Reason {
	if found, ok := errors.AsType[*Error](err); ok {
		return found.Reason
	}
	return ""
}
