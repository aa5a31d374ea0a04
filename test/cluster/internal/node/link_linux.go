package node

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// nodeLink is the name of the network interface in the node.
const nodeLink = "eth0"

// Reserve creates the bridge of a free network on this machine. The search
// starts at a network that depends on the folder, so that a cluster usually has
// the same addresses after each start.
func Reserve(folder string) (Network, error) {
	hash := fnv.New32a()
	hash.Write([]byte(folder))
	count := lastNetwork - firstNetwork + 1
	start := int(hash.Sum32() % uint32(count))
	for i := range count {
		n := Network{Second: firstNetwork + (start+i)%count}
		used, err := n.routed()
		if err != nil {
			return Network{}, err
		}
		if used {
			continue
		}
		err = n.create()
		if errors.Is(err, syscall.EEXIST) {
			continue
		}
		if err != nil {
			return Network{}, errors.Join(fmt.Errorf("cannot create the network %s: %w", n.All(), err), n.Release())
		}
		return n, nil
	}
	return Network{}, fmt.Errorf("all networks from 10.%d.0.0/16 to 10.%d.0.0/16 are in use: stop other clusters with real nodes (`ip link` lists their links cwnode*)", firstNetwork, lastNetwork)
}

// routed reports whether this machine has a route to a part of the network.
func (n Network) routed() (bool, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return false, fmt.Errorf("cannot list the routes of this machine: %w", err)
	}
	own := netip.MustParsePrefix(n.All())
	for i := range routes {
		if routes[i].Dst == nil {
			continue
		}
		other, err := netip.ParsePrefix(routes[i].Dst.String())
		if err == nil && other.Bits() > 0 && other.Overlaps(own) {
			return true, nil
		}
	}
	return false, nil
}

// create creates the bridge with the address of this machine, and the route to
// everything behind the node.
func (n Network) create() error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: n.link(), HardwareAddr: n.hardware(1)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	if err := addAddress(bridge, n.Host()); err != nil {
		return err
	}
	_, all, err := net.ParseCIDR(n.All())
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Dst: all, Gw: net.ParseIP(n.Node())})
}

// Connect creates the network interface of a node with the given first process.
func (n Network) Connect(pid int) error {
	bridge, err := netlink.LinkByName(n.link())
	if err != nil {
		return fmt.Errorf("cannot find the network of the node: %w", err)
	}
	pair := &netlink.Veth{
		LinkAttrs:        netlink.LinkAttrs{Name: n.port(), MasterIndex: bridge.Attrs().Index},
		PeerName:         nodeLink,
		PeerNamespace:    netlink.NsPid(pid),
		PeerHardwareAddr: n.hardware(2),
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cannot connect the node to the network: %w", err)
	}
	return netlink.LinkSetUp(pair)
}

// hardware returns the hardware address of a network interface. It is always the
// same, so that this machine reaches the node immediately after a restart.
func (n Network) hardware(last byte) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0, 0, 0, byte(n.Second), last}
}

// Release removes the links and routes of the network.
func (n Network) Release() error {
	return errors.Join(n.disconnect(), deleteLink(n.link()))
}

// disconnect removes the network interface of the node. The kernel removes it,
// too, some time after the last process of the node.
func (n Network) disconnect() error { return deleteLink(n.port()) }

func deleteLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("cannot remove the link %s: %w", name, err)
	}
	return nil
}

// addAddress sets the address of a link and starts it.
func addAddress(link netlink.Link, address string) error {
	ip, err := netlink.ParseAddr(address + "/24")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, ip); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}
