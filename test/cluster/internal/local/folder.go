package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
)

// folder is the folder of a cluster.
type folder string

func (f folder) state() string           { return filepath.Join(string(f), "state.json") }
func (f folder) lock() string            { return filepath.Join(string(f), "lock") }
func (f folder) kubeconfig() string      { return filepath.Join(string(f), "kubeconfig") }
func (f folder) data() string            { return filepath.Join(string(f), "etcd") }
func (f folder) logs() string            { return filepath.Join(string(f), "logs") }
func (f folder) log(part string) string  { return filepath.Join(f.logs(), part+".log") }
func (f folder) pki() string             { return filepath.Join(string(f), "pki") }
func (f folder) cert(name string) string { return filepath.Join(f.pki(), name+".crt") }
func (f folder) key(name string) string  { return filepath.Join(f.pki(), name+".key") }
func (f folder) config() string          { return filepath.Join(string(f), "config") }
func (f folder) node() string            { return filepath.Join(string(f), "node") }
func (f folder) nodeConfig() string      { return filepath.Join(f.node(), "config", "node.json") }

func (f folder) configFile(name string) string { return filepath.Join(f.config(), name) }

// prepare creates the empty folders of a new cluster.
func (f folder) prepare() error {
	if err := f.clean(); err != nil {
		return err
	}
	if err := os.RemoveAll(f.logs()); err != nil {
		return err
	}
	for _, dir := range []string{f.logs(), f.pki(), f.config()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// clean removes the files of a cluster, except its logs. It only deletes names
// that belong to a cluster, because the folder may contain other files.
func (f folder) clean() error {
	for _, path := range []string{f.data(), f.pki(), f.config(), f.kubeconfig(), f.state()} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return node.Clean(f.node())
}

// acquire prevents other processes from starting or stopping the same cluster.
// The lock ends with this process, however the process ends.
func (f folder) acquire() (release func(), err error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(f.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another `cluster up` or `cluster down` is using %s: try again when it has finished", f)
		}
		return nil, fmt.Errorf("cannot lock %s: %w", f.lock(), err)
	}
	return func() { _ = file.Close() }, nil
}
