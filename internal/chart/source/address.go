package source

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// AddressError is the error for a connection to an address that is not public.
type AddressError struct {
	// Host is the name in the URL, and Address what it resolved to.
	Host    string
	Address netip.Addr
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s has the address %s, which is not public", e.Host, e.Address)
}

// special lists the networks that are not on the public internet although
// netip.Addr.IsGlobalUnicast is true and IsPrivate is false. See RFC 6890 and its updates.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT, and some clouds' metadata
	netip.MustParsePrefix("168.63.129.16/32"), // virtual address of Azure hosts
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // includes Teredo
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4: contains an IPv4 address
	netip.MustParsePrefix("3fff::/20"),
}

var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
)

// public reports whether an address belongs to the public internet.
func public(address netip.Addr) bool {
	address = address.Unmap()
	if nat64.Contains(address) {
		// The last 4 bytes are the IPv4 address that the gateway connects to.
		bytes := address.As16()
		return public(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	if !address.IsGlobalUnicast() || address.IsPrivate() || address.Is6() && !globalIPv6.Contains(address) {
		return false
	}
	for _, network := range special {
		if network.Contains(address) {
			return false
		}
	}
	return true
}

// dialer opens connections.
type dialer struct {
	publicOnly bool
	// allowed has the hosts that may have any address: HOST or HOST:PORT, in lower case.
	allowed map[string]bool
	// proxies has the proxies of the environment. The administrator has configured them,
	// so they may have any address.
	proxies     sync.Map
	environment func(*http.Request) (*url.URL, error)
}

func newDialer(o Options) *dialer {
	d := &dialer{publicOnly: o.PublicOnly, allowed: map[string]bool{}, environment: http.ProxyFromEnvironment}
	for _, host := range o.AllowHosts {
		d.allowed[strings.ToLower(host)] = true
	}
	return d
}

// allows reports whether a host, with or without a port, may have any address.
func (d *dialer) allows(hostport string) bool {
	if !d.publicOnly {
		return true
	}
	hostport = strings.ToLower(hostport)
	host, _, err := net.SplitHostPort(hostport)
	return d.allowed[hostport] || err == nil && d.allowed[host]
}

// dial connects to a host. It checks the address after the name was resolved, right before
// the connection is made.
func (d *dialer) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	if _, proxy := d.proxies.Load(hostport); !proxy && !d.allows(hostport) {
		dialer.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return check(hostport, address)
		}
	}
	return dialer.DialContext(ctx, network, hostport)
}

// check returns an AddressError unless the address of a host is public.
func check(hostport, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := to.Addr().WithZone(""); !public(ip) {
		return &AddressError{Host: hostport, Address: ip}
	}
	return nil
}

// proxy returns the proxy of the environment for a request. The proxy connects to the host,
// so only a host that is an IP address can be checked here.
func (d *dialer) proxy(r *http.Request) (*url.URL, error) {
	proxy, err := d.environment(r)
	if err != nil || proxy == nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil && !public(ip.WithZone("")) && !d.allows(withPort(r.URL)) {
		return nil, &AddressError{Host: r.URL.Host, Address: ip}
	}
	d.proxies.Store(withPort(proxy), true)
	return proxy, nil
}

// withPort returns HOST:PORT of a URL.
func withPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "socks5", u.Scheme == "socks5h":
		port = "1080"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
