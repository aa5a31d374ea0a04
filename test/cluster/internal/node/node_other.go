//go:build !linux

package node

import (
	"errors"

	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

var errLinux = errors.New("a node that runs containers requires Linux")

// Reserve returns an error, because it requires Linux.
func Reserve(string) (Network, error) { return Network{}, errLinux }

// Release does nothing: there is no network.
func (n Network) Release() error { return nil }

// RemoveCgroups does nothing: there are no cgroups.
func (n Network) RemoveCgroups() error { return nil }

// Leftovers returns nothing, because nothing was created.
func (n Network) Leftovers(string) ([]string, error) { return nil, nil }

// Start returns an error, because it requires Linux.
func Start(*Config, string, ...string) (*process.Process, error) { return nil, errLinux }

// StartAgain returns an error, because it requires Linux.
func StartAgain(string, string, ...string) (*process.Process, error) { return nil, errLinux }

// Run returns an error, because it requires Linux.
func Run(string) error { return errLinux }

// CheckFolder returns an error, because it requires Linux.
func CheckFolder(string) error { return errLinux }

// Missing returns what this machine does not have.
func Missing() []string { return []string{errLinux.Error()} }
