package chartcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Folders of a Cache.
const (
	archives = "archives"
	entries  = "entries"
	// suffix is the end of the names of archives.
	suffix = ".tgz"
)

// Entry is what a ChartKind was served with.
type Entry struct {
	// Spec is the digest of the spec, and Text the entry of a watches file.
	Spec string          `json:"spec"`
	Text json.RawMessage `json:"text"`
	// Version, Digest and Source identify the chart to users. Digest is that of the
	// manifest in a registry, else that of the archive.
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Source  string `json:"source"`
	// Verified identifies the keyring that has verified the provenance; empty if none has.
	Verified string `json:"verified,omitempty"`
	// Archive is the SHA-256 digest of the archive. Store sets it.
	Archive string `json:"archive"`
}

// Cache is a folder with archives and entries. Its methods may be called concurrently.
type Cache struct {
	dir   string
	limit int64
	mu    sync.Mutex
}

// Open creates the folder if it is missing. The limit is in bytes.
func Open(dir string, limit int64) (*Cache, error) {
	for _, sub := range []string{archives, entries} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("create the cache of charts: %w", err)
		}
	}
	return &Cache{dir: dir, limit: limit}, nil
}

// ErrTooLarge marks an archive that exceeds the limit.
var ErrTooLarge = errors.New("the archive exceeds the limit of the cache")

// Store stores an archive and the entry of a ChartKind. It returns the digest for Used.
func (c *Cache) Store(uid types.UID, entry Entry, archive []byte) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(len(archive)) > c.limit {
		return "", fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(archive), c.limit)
	}
	entry.Archive = digest(archive)
	data, err := json.Marshal(entry)
	if err != nil {
		return "", fmt.Errorf("store the entry of a chart: %w", err)
	}
	if err := c.evict(int64(len(archive)), entry.Archive); err != nil {
		return "", err
	}
	if err := c.write(c.archive(entry.Archive), archive); err != nil {
		return "", err
	}
	return entry.Archive, c.write(c.entry(uid), data)
}

// Load returns the entry of a ChartKind and its archive. It returns false if the ChartKind
// has no entry, or the archive is missing or was changed.
func (c *Cache) Load(uid types.UID) (entry Entry, archive []byte, found bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	data, err := os.ReadFile(c.entry(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, nil, false, nil
	}
	if err != nil {
		return Entry{}, nil, false, fmt.Errorf("read the cache of charts: %w", err)
	}
	if err := json.Unmarshal(data, &entry); err != nil || !isDigest(entry.Archive) {
		return Entry{}, nil, false, nil
	}
	archive, err = os.ReadFile(c.archive(entry.Archive))
	if errors.Is(err, fs.ErrNotExist) || err == nil && digest(archive) != entry.Archive {
		return Entry{}, nil, false, nil
	}
	if err != nil {
		return Entry{}, nil, false, fmt.Errorf("read the cache of charts: %w", err)
	}
	c.touch(entry.Archive)
	return entry, archive, true, nil
}

// Delete deletes the entry of a ChartKind. Its archive remains until there is no space for
// it, because another ChartKind may have it, too.
func (c *Cache) Delete(uid types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.Remove(c.entry(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete from the cache of charts: %w", err)
	}
	return nil
}

// Used marks an archive as recently used.
func (c *Cache) Used(archive string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isDigest(archive) {
		c.touch(archive)
	}
}

func (c *Cache) touch(archive string) {
	now := time.Now()
	// Without the time, the archive is deleted earlier.
	_ = os.Chtimes(c.archive(archive), now, now)
}

// evict deletes the least recently used archives until there is space for a new one, and
// then the entries without an archive.
func (c *Cache) evict(space int64, keep string) error {
	list, err := os.ReadDir(filepath.Join(c.dir, archives))
	if err != nil {
		return fmt.Errorf("read the cache of charts: %w", err)
	}
	var all []fs.FileInfo
	total := space
	for _, file := range list {
		info, err := file.Info()
		if err != nil || !strings.HasSuffix(file.Name(), suffix) || file.Name() == keep+suffix {
			// Another process has deleted it, or writes it.
			continue
		}
		all = append(all, info)
		total += info.Size()
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	deleted := false
	for _, oldest := range all {
		if total <= c.limit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, archives, oldest.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete from the cache of charts: %w", err)
		}
		total -= oldest.Size()
		deleted = true
	}
	if deleted {
		c.deleteDangling(keep)
	}
	return nil
}

// deleteDangling deletes entries without an archive.
func (c *Cache) deleteDangling(keep string) {
	names, err := filepath.Glob(filepath.Join(c.dir, entries, "*.json"))
	if err != nil {
		return
	}
	for _, name := range names {
		var entry Entry
		data, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			continue
		}
		_ = json.Unmarshal(data, &entry)
		if entry.Archive == keep {
			continue
		}
		if _, err := os.Stat(c.archive(entry.Archive)); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(name)
		}
	}
}

// write replaces a file at once, so that a crash leaves no part of it.
func (c *Cache) write(name string, data []byte) error {
	if known, err := os.ReadFile(filepath.Clean(name)); err == nil && bytes.Equal(known, data) {
		now := time.Now()
		_ = os.Chtimes(name, now, now)
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return fmt.Errorf("write to the cache of charts: %w", err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write to the cache of charts: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

func (c *Cache) archive(digest string) string { return filepath.Join(c.dir, archives, digest+suffix) }

// entry returns the file of a ChartKind's entry. A UID is a text of the API server.
func (c *Cache) entry(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return filepath.Join(c.dir, entries, hex.EncodeToString(sum[:16])+".json")
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isDigest reports whether a text of a file is a digest and not a path.
func isDigest(text string) bool {
	data, err := hex.DecodeString(text)
	return err == nil && len(data) == sha256.Size
}
