package cache

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestFolder(t *testing.T) {
	f := &Folder{path: filepath.Join(t.TempDir(), "a"), tool: "1", limit: limit}
	if _, ok := f.Get("key"); ok {
		t.Error("an empty folder has a result")
	}
	f.Put("key", []byte("old"))
	f.Put("key", []byte("new"))
	f.Put("other", nil)
	if data, ok := f.Get("key"); !ok || string(data) != "new" {
		t.Errorf("got %q, %t", data, ok)
	}
	if data, ok := f.Get("other"); !ok || len(data) > 0 {
		t.Errorf("got %q, %t", data, ok)
	}
	newer := &Folder{path: f.path, tool: "2", limit: limit}
	if data, ok := newer.Get("key"); ok {
		t.Errorf("another build of the program got %q", data)
	}
	if entries, err := os.ReadDir(f.path); err != nil || len(entries) != 2 {
		t.Errorf("got %d files, error %v; want 2", len(entries), err)
	}
}

// A folder that cannot be created loses the results, and is no error.
func TestFolder_NotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Folder{path: filepath.Join(file, "below"), limit: limit}
	f.Put("key", []byte("data"))
	if _, ok := f.Get("key"); ok {
		t.Error("got a result from a folder that does not exist")
	}
}

// Readers never get a part of a result.
func TestFolder_IsSafeForConcurrentUse(t *testing.T) {
	path := t.TempDir()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			f := &Folder{path: path, limit: limit}
			data := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
			for range 50 {
				f.Put("key", data)
				got, ok := f.Get("key")
				if !ok || len(got) != len(data) || bytes.Count(got, got[:1]) != len(got) {
					t.Errorf("got %d bytes, %t", len(got), ok)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestFolder_DeletesOldest(t *testing.T) {
	path := t.TempDir()
	f := &Folder{path: path, limit: 1000}
	for i := range 20 {
		key := strconv.Itoa(i)
		f.Put(key, make([]byte, 100))
		used := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(f.file(key), used, used); err != nil {
			t.Fatal(err)
		}
	}
	foreign := filepath.Join(path, "foreign")
	if err := os.WriteFile(foreign, make([]byte, 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	// A result that is used is not old.
	f.Get("0")
	next := &Folder{path: path, limit: 1000}
	next.Put("new", nil)
	for key, want := range map[string]bool{"0": true, "1": false, "15": false, "16": true, "19": true, "new": true} {
		if _, ok := next.Get(key); ok != want {
			t.Errorf("%s: got %t, want %t", key, ok, want)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a file of another program: %v", err)
	}
}
