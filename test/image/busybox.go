package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// busybox is a layer with busybox and its programs. Its program comes from a
// layer with the package busybox-static.
type busybox struct{ from debian }

func (b busybox) key() (string, error) {
	key, err := b.from.key()
	return "busybox from " + key, err
}

func (b busybox) write(ctx context.Context, o options, path string) error {
	source, err := layerFile(ctx, o, b.from)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(o.out, "busybox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a leftover does no harm
	binary := filepath.Join(folder, "busybox")
	if err := extract(source, "bin/busybox", binary); err != nil {
		return err
	}
	applets, err := exec.CommandContext(ctx, binary, "--list").Output() //nolint:gosec // it was extracted just now
	if err != nil {
		return fmt.Errorf("busybox --list: %w", err)
	}
	content := program("bin/busybox", binary)
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			content["bin/"+applet] = file{mode: 0o777, link: "busybox"}
		}
	}
	content["etc/"] = file{mode: 0o755}
	content["etc/passwd"] = file{mode: 0o644, text: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"}
	content["etc/group"] = file{mode: 0o644, text: "root:x:0:\nnobody:x:65534:\n"}
	return content.write(ctx, o, path)
}

// extract copies a program from a tar archive.
func extract(archive, name, target string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
	reader := tar.NewReader(in)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s does not contain %s", archive, name)
		}
		if err != nil {
			return err
		}
		// With merged folders, the program is in usr/bin.
		if path := strings.TrimPrefix(header.Name, "./"); path != name && path != "usr/"+name {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // a program must be executable
		if err != nil {
			return err
		}
		_, err = io.Copy(out, reader)
		return errors.Join(err, out.Close())
	}
}
