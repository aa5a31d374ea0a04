package chartcache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func open(t *testing.T, limit int64) *Cache {
	t.Helper()
	c, err := Open(t.TempDir(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// has reports whether the cache has an archive for a ChartKind.
func has(t *testing.T, c *Cache, uid types.UID, want []byte) bool {
	t.Helper()
	_, archive, found, err := c.Load(uid)
	if err != nil {
		t.Fatal(err)
	}
	if found && !bytes.Equal(archive, want) {
		t.Fatalf("%s: the archive is %q, want %q", uid, archive, want)
	}
	return found
}

func TestCache_LoadReturnsStoredEntryAfterRestart(t *testing.T) {
	c := open(t, 100)
	stored := Entry{Spec: "s", Text: []byte(`{"kind":"A"}`), Version: "1.2.3", Digest: "sha256:1", Source: "oci://a.test/b", Verified: "k"}
	if _, err := c.Store("a", stored, []byte("archive")); err != nil {
		t.Fatal(err)
	}
	again, err := Open(c.dir, 100)
	if err != nil {
		t.Fatal(err)
	}
	entry, archive, found, err := again.Load("a")
	if err != nil || !found || string(archive) != "archive" {
		t.Fatalf("%q, %v, %v", archive, found, err)
	}
	stored.Archive = digest([]byte("archive"))
	if fmt.Sprint(entry) != fmt.Sprint(stored) {
		t.Errorf("the entry is %+v, want %+v", entry, stored)
	}
	if has(t, c, "other", nil) {
		t.Error("a ChartKind without an entry has an archive")
	}
	if err := errors.Join(c.Delete("a"), c.Delete("a")); err != nil || has(t, c, "a", nil) {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestCache_LoadIgnoresDamagedFiles(t *testing.T) {
	for name, damage := range map[string]func(c *Cache) error{
		"changed archive": func(c *Cache) error {
			return os.WriteFile(c.archive(digest([]byte("archive"))), []byte("changed"), 0o600)
		},
		"missing archive": func(c *Cache) error { return os.Remove(c.archive(digest([]byte("archive")))) },
		"no JSON":         func(c *Cache) error { return os.WriteFile(c.entry("a"), []byte("{"), 0o600) },
		"a path as digest": func(c *Cache) error {
			return os.WriteFile(c.entry("a"), []byte(`{"archive":"../../secret"}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, 100)
			if _, err := c.Store("a", Entry{}, []byte("archive")); err != nil {
				t.Fatal(err)
			}
			if err := damage(c); err != nil {
				t.Fatal(err)
			}
			if has(t, c, "a", nil) {
				t.Error("the changed chart is used")
			}
			if _, err := c.Store("a", Entry{}, []byte("archive")); err != nil || !has(t, c, "a", []byte("archive")) {
				t.Errorf("after another store: %v", err)
			}
		})
	}
}

func TestCache_DeletesLeastRecentlyUsedArchives(t *testing.T) {
	c := open(t, 10)
	old := time.Now().Add(-time.Hour)
	for i, uid := range []types.UID{"a", "b", "c"} {
		content := []byte(uid + "23")
		if _, err := c.Store(uid, Entry{}, content); err != nil {
			t.Fatal(err)
		}
		at := old.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(c.archive(digest(content)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	c.Used(digest([]byte("a23")))
	if _, err := c.Store("d", Entry{}, []byte("d23")); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[types.UID]bool{"a": true, "b": false, "c": true, "d": true} {
		if got := has(t, c, uid, []byte(uid+"23")); got != want {
			t.Errorf("%s is in the cache: %v, want %v", uid, got, want)
		}
	}
	if _, err := os.Stat(c.entry("b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the entry without an archive: %v", err)
	}
	if _, err := c.Store("e", Entry{}, make([]byte, 11)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an archive above the limit: %v, want %v", err, ErrTooLarge)
	}
}

func TestCache_StoreFailsWithoutFolder(t *testing.T) {
	c := open(t, 100)
	if err := os.RemoveAll(filepath.Join(c.dir, archives)); err != nil {
		t.Fatal(err)
	}
	if stored, err := c.Store("a", Entry{}, []byte("archive")); err == nil {
		t.Errorf("the archive was stored as %q, want an error", stored)
	}
}

// TestCache_StaysBelowLimit stores random archives.
func TestCache_StaysBelowLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c, err := Open(t.TempDir(), 100)
		if err != nil {
			rt.Fatal(err)
		}
		for i, size := range rapid.SliceOfN(rapid.IntRange(1, 60), 1, 12).Draw(rt, "sizes") {
			uid := types.UID(strconv.Itoa(rapid.IntRange(0, 4).Draw(rt, "uid")))
			content := bytes.Repeat([]byte{byte(i)}, size)
			if _, err := c.Store(uid, Entry{}, content); err != nil {
				rt.Fatal(err)
			}
			if !has(t, c, uid, content) {
				rt.Fatal("the archive that was stored last is missing")
			}
			var total int64
			files, err := filepath.Glob(filepath.Join(c.dir, archives, "*"))
			if err != nil {
				rt.Fatal(err)
			}
			for _, name := range files {
				info, err := os.Stat(name)
				if err != nil {
					rt.Fatal(err)
				}
				total += info.Size()
			}
			if total > 100 {
				rt.Fatalf("%d bytes after %d archives", total, i+1)
			}
		}
	})
}
