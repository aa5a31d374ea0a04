package node

import (
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
