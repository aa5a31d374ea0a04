package node

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
)

// Leftovers returns what is left of a node in the folder on this machine:
// mounts, processes, cgroups, links and routes.
func (n Network) Leftovers(folder string) ([]string, error) {
	var all []string
	for _, find := range []func() ([]string, error){
		func() ([]string, error) { return leftMounts(folder) },
		func() ([]string, error) { return leftProcesses(folder) },
		n.leftCgroups,
		n.leftLinks,
	} {
		found, err := find()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	used, err := n.routed()
	if err != nil {
		return nil, err
	}
	if used {
		all = append(all, "a route to "+n.All())
	}
	return all, nil
}

func leftMounts(folder string) ([]string, error) {
	file, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.Contains(lines.Text(), folder+"/") {
			found = append(found, "mount: "+lines.Text())
		}
	}
	return found, lines.Err()
}

// leftProcesses returns processes with an argument that names a file in the
// folder of the node.
func leftProcesses(folder string) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if strings.Contains(string(raw), folder+"/") {
			found = append(found, fmt.Sprintf("process %s: %s", filepath.Base(filepath.Dir(file)), strings.ReplaceAll(string(raw), "\x00", " ")))
		}
	}
	return found, nil
}

func (n Network) leftCgroups() ([]string, error) {
	folders, err := n.cgroups()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, folder := range folders {
		if _, err := os.Stat(folder); err == nil {
			found = append(found, "cgroup: "+folder)
		}
	}
	return found, nil
}

func (n Network) leftLinks() ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, link := range links {
		if strings.HasPrefix(link.Attrs().Name, n.link()) {
			found = append(found, "network link: "+link.Attrs().Name)
		}
	}
	return found, nil
}
