package node

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig_WriteReadClean(t *testing.T) {
	c := &Config{Dir: t.TempDir(), Network: Network{Second: 200}, CNI: "/bin/cni", Images: []string{"a.tar"}}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ file, text string }{
		{"containerd.toml", "bin_dirs = ['/bin/cni']"},
		{"kubelet.yaml", "cgroupRoot: /chartwright-node-200"},
		{"kube-proxy.yaml", "clusterCIDR: 10.200.64.0/18"},
		{"cni/pods.conflist", `"subnet": "10.200.64.0/18"`},
		{"resolv.conf", "nameserver 10.200.0.1"},
	} {
		raw, err := os.ReadFile(c.file(want.file))
		if err != nil || !strings.Contains(string(raw), want.text) {
			t.Errorf("%s does not contain %q (%v)", want.file, want.text, err)
		}
	}
	stored, err := read(c.file("node.json"))
	if err != nil || stored.Network != c.Network || len(stored.Images) != 1 {
		t.Errorf("read %+v (%v), wrote %+v", stored, err, c)
	}
	if err := Clean(c.Dir); err != nil {
		t.Fatal(err)
	}
	for name, kept := range map[string]bool{"config": false, "volumes": false, "kubelet": false, "containerd": true, "imported": true} {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); (err == nil) != kept {
			t.Errorf("after Clean, %s: %v, want kept: %v", name, err, kept)
		}
	}
}

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
