package cache

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	gocache "github.com/rogpeppe/go-internal/cache"
)

// Folder is a folder with results. It is safe for concurrent use, also by several
// processes.
type Folder struct {
	cache *gocache.Cache
	// tool identifies the program whose results are in the folder.
	tool string
}

// Open opens the folder chartwright in the cache folder of the user (os.UserCacheDir). It
// returns nil if that folder is not writable, or if the program cannot be identified.
func Open() *Folder {
	parent, err := os.UserCacheDir()
	tool, unknown := identity()
	if err != nil || unknown != nil {
		return nil
	}
	return open(filepath.Join(parent, "chartwright"), tool)
}

func open(path, tool string) *Folder {
	// Without the folder, the next call fails.
	_ = os.MkdirAll(path, 0o700)
	cache, err := gocache.Open(path)
	if err != nil {
		return nil
	}
	// Without it, results that are not used stay longer.
	_ = cache.Trim()
	return &Folder{cache: cache, tool: tool}
}

// identity identifies this build of the program. A version is not enough, because builds
// during development have the same.
func identity() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano()), nil
}

func (f *Folder) id(key string) gocache.ActionID {
	return sha256.Sum256([]byte(f.tool + "\x00" + key))
}

// Get returns the data of a key, and false without data.
func (f *Folder) Get(key string) ([]byte, bool) {
	data, _, err := f.cache.GetBytes(f.id(key))
	return data, err == nil
}

// Put stores data. It does nothing if the folder is not writable.
func (f *Folder) Put(key string, data []byte) { _ = f.cache.PutBytes(f.id(key), data) }
