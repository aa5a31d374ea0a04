package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// aptHelper downloads files with the settings of apt, such as proxies.
const aptHelper = "/usr/lib/apt/apt-helper"

// mirrorTimeout is the time for the mirror to answer.
const mirrorTimeout = 30 * time.Second

// missing returns an error that names what this machine does not have for
// building the images. Nothing is missing if all layers with Debian packages
// exist.
func missing(ctx context.Context, o options) error {
	for _, d := range debianLayers() {
		key, err := d.key()
		if err != nil {
			return err
		}
		if exists, err := isFile(o.layer(key)); exists || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		for _, program := range []string{"mmdebstrap", "apt-get"} {
			if _, err := exec.LookPath(program); err != nil {
				return fmt.Errorf("missing: %s (the Debian package of this name): %w", program, err)
			}
		}
		if _, err := os.Stat(keyring); err != nil {
			return fmt.Errorf("missing: the Debian package debian-archive-keyring: %w", err)
		}
		if err := tryMirror(ctx, d.suite); err != nil {
			return fmt.Errorf("missing: Debian packages of %s: %w", d.suite, err)
		}
	}
	return nil
}

// debianLayers returns the layers with Debian packages.
func debianLayers() []debian {
	layers := make([]debian, 0, 1+len(testedMajors))
	layers = append(layers, web)
	for _, major := range testedMajors {
		layers = append(layers, postgresLayer(major, postgresSuites[major]))
	}
	return layers
}

// tryMirror downloads the description of a suite.
func tryMirror(ctx context.Context, suite string) error {
	site, err := mirror(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "chartwright-mirror-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a leftover does no harm
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	url := site + "/dists/" + suite + "/Release"
	if _, err := exec.CommandContext(ctx, aptHelper, "download-file", url, filepath.Join(folder, "Release")).Output(); err != nil { //nolint:gosec // the URL is that of apt
		return fmt.Errorf("the Debian mirror of apt does not answer: cannot download %s: %w", url, err)
	}
	return nil
}
