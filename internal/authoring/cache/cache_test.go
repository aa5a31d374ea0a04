package cache

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f := open(path, "1")
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
	newer := open(path, "2")
	if data, ok := newer.Get("key"); ok {
		t.Errorf("another build of the program got %q", data)
	}
}

// Without a folder, there are no results.
func TestFolder_NotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := open(filepath.Join(file, "below"), ""); f != nil {
		t.Error("opened a folder below a file")
	}
}

// Readers never get a part of a result.
func TestFolder_IsSafeForConcurrentUse(t *testing.T) {
	path := t.TempDir()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			f := open(path, "")
			data := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
			for range 50 {
				f.Put("key", data)
				got, ok := f.Get("key")
				if ok && (len(got) != len(data) || bytes.Count(got, got[:1]) != len(got)) {
					t.Errorf("got %d bytes", len(got))
					return
				}
			}
		})
	}
	group.Wait()
}
