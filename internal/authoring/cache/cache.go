package cache

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Folder is a folder with results. It is safe for concurrent use, also by several
// processes.
type Folder struct {
	path string
	// tool identifies the program whose results are in the folder.
	tool string
	// limit is the maximum size of the folder, in bytes.
	limit int64
	prune sync.Once
}

// limit is the maximum size of the folder: thousands of charts.
const limit = 64 << 20

// Open opens the folder chartwright in the cache folder of the user (os.UserCacheDir). It
// returns nil without such a folder, or if the program cannot be identified.
func Open() *Folder {
	parent, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	tool, err := identity()
	if err != nil {
		return nil
	}
	return &Folder{path: filepath.Join(parent, "chartwright"), tool: tool, limit: limit}
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

// prefix starts the names of all files in the folder.
const prefix = "result-"

func (f *Folder) file(key string) string {
	sum := sha256.Sum256([]byte(f.tool + "\x00" + key))
	return filepath.Join(f.path, prefix+hex.EncodeToString(sum[:]))
}

// Get returns the data of a key, and false without data.
func (f *Folder) Get(key string) ([]byte, bool) {
	name := f.file(key)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, false
	}
	// The modification time is the time of the last use.
	now := time.Now()
	_ = os.Chtimes(name, now, now)
	return data, true
}

// Put stores data. It does nothing if the folder is not writable.
func (f *Folder) Put(key string, data []byte) {
	f.prune.Do(f.deleteOldest)
	if os.MkdirAll(f.path, 0o700) != nil {
		return
	}
	temporary, err := os.CreateTemp(f.path, prefix+"*.tmp")
	if err != nil {
		return
	}
	_, err = temporary.Write(data)
	err = cmp.Or(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), f.file(key))
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
}

// deleteOldest deletes files until half of the maximum size is free.
func (f *Folder) deleteOldest() {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	size := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(info.Name(), prefix) {
			continue
		}
		files, size = append(files, info), size+info.Size()
	}
	if size <= f.limit {
		return
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, file := range files {
		if size <= f.limit/2 {
			return
		}
		_ = os.Remove(filepath.Join(f.path, file.Name()))
		size -= file.Size()
	}
}
