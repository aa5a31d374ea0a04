package chartsdir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Limits for folders that are not charts: how deep folders are read, and the size up to
// which the content of a file is read. Of larger files, size and time count.
const (
	maxDepth    = 16
	maxFileSize = 32 << 20
)

// content describes the files of a folder.
type content struct {
	// stamp changes with names, sizes, times and the targets of links. digest changes with
	// names and contents; it is empty unless files were read.
	stamp, digest string
	// newest is the time of the last change of a file or folder.
	newest time.Time
	// folders are all folders below, with the folder itself.
	folders []string
}

// stat describes the files of a folder without reading them.
func stat(folder string) (content, error) { return inspect(folder, false) }

// read describes the files of a folder, and reads them.
func read(folder string) (content, error) { return inspect(folder, true) }

func inspect(folder string, reads bool) (content, error) {
	i := inspection{root: folder, stamps: sha256.New()}
	if reads {
		i.contents = sha256.New()
	}
	if err := i.folder(folder, 0); err != nil {
		return content{}, err
	}
	i.found.stamp = hex.EncodeToString(i.stamps.Sum(nil))
	if reads {
		i.found.digest = hex.EncodeToString(i.contents.Sum(nil))
	}
	return i.found, nil
}

type inspection struct {
	root             string
	stamps, contents hash.Hash
	found            content
}

// folder adds the files of a folder. It follows links, because volumes of Kubernetes
// consist of links, and skips names that begin with two dots, which are the targets of
// these links.
func (i *inspection) folder(name string, depth int) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	i.add(name, info)
	i.found.folders = append(i.found.folders, name)
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		path := filepath.Join(name, entry.Name())
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case info.IsDir() && depth < maxDepth:
			err = i.folder(path, depth+1)
		case info.Mode().IsRegular():
			err = i.file(path, info, entry.Type()&os.ModeSymlink != 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds the name and the time of a file or folder.
func (i *inspection) add(name string, info os.FileInfo) {
	if info.ModTime().After(i.found.newest) {
		i.found.newest = info.ModTime()
	}
	notef(i.stamps, "%q %d %d\n", i.relative(name), info.Size(), info.ModTime().UnixNano())
}

func (i *inspection) relative(name string) string { return strings.TrimPrefix(name, i.root) }

func (i *inspection) file(name string, info os.FileInfo, link bool) error {
	i.add(name, info)
	if link {
		// The kubelet replaces the target of a link above.
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return err
		}
		notef(i.stamps, "%q\n", target)
	}
	if i.contents == nil {
		return nil
	}
	notef(i.contents, "%q %d\n", i.relative(name), info.Size())
	if info.Size() > maxFileSize {
		notef(i.contents, "%d\n", info.ModTime().UnixNano())
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(i.contents, io.LimitReader(file, maxFileSize))
	return err
}

// notef adds a text to a hash. Write of a hash never fails.
func notef(to hash.Hash, format string, args ...any) { _, _ = fmt.Fprintf(to, format, args...) }
