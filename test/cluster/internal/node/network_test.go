package node

import (
	"net/netip"
	"testing"
)

func TestNetwork_RangesDoNotOverlap(t *testing.T) {
	n := Network{Second: 200}
	all := netip.MustParsePrefix(n.All())
	ranges := []netip.Prefix{netip.MustParsePrefix(n.Host() + "/24"), netip.MustParsePrefix(n.Pods()), netip.MustParsePrefix(n.Services())}
	for i, a := range ranges {
		if !all.Contains(a.Addr()) {
			t.Errorf("%s is not in %s", a, all)
		}
		for _, b := range ranges[i+1:] {
			if a.Overlaps(b) {
				t.Errorf("%s overlaps %s", a, b)
			}
		}
	}
	for _, address := range []string{n.FirstService(), n.DNS()} {
		if !ranges[2].Contains(netip.MustParseAddr(address)) {
			t.Errorf("%s is not in %s", address, ranges[2])
		}
	}
}

func TestNetwork_LoadBalancer(t *testing.T) {
	n := Network{Second: 200}
	for clusterIP, want := range map[string]string{
		"10.200.128.1":   "10.200.192.1",
		"10.200.191.254": "10.200.255.254",
		"10.200.64.1":    "",
		"10.201.128.1":   "",
		"None":           "",
		"":               "",
	} {
		got, err := n.LoadBalancer(clusterIP)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("LoadBalancer(%q) = %q, %v, want %q", clusterIP, got, err, want)
		}
	}
}
