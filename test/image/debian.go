package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// debian is a layer with Debian packages, from the mirror of this machine. The
// versions of the packages are not part of the key: an image is built once.
type debian struct {
	suite    string
	packages []string
	// hooks are commands that run before the packages are installed. $1 is the
	// root of the layer.
	hooks []string
}

func (d debian) key() (string, error) { return fmt.Sprintf("debian %+v", d), nil }

func (d debian) write(ctx context.Context, _ options, file string) error {
	mirror, err := mirror(ctx)
	if err != nil {
		return err
	}
	args := []string{
		"--quiet", "--mode=root", "--variant=essential", "--format=tar",
		"--include=" + strings.Join(d.packages, ","), "--keyring=" + keyring,
		"--aptopt=APT::Install-Recommends \"false\"",
		// The mirror may have an old copy of a suite. Its signature is checked.
		"--aptopt=Acquire::Check-Valid-Until \"false\"",
	}
	for _, path := range []string{"doc", "man", "locale", "info"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+path+"/*")
	}
	for _, hook := range d.hooks {
		args = append(args, "--essential-hook="+hook)
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, d.suite, file, mirror)...) //nolint:gosec // the arguments are constants of this program
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("mmdebstrap cannot install %s of Debian %s from %s: %w", strings.Join(d.packages, ", "), d.suite, mirror, err)
	}
	return nil
}

// mirror returns the Debian mirror that apt uses on this machine.
func mirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("apt-get cannot list its sources: %w", err)
	}
	for site := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(strings.TrimRight(site, "/"), "/debian") {
			return site, nil
		}
	}
	return "", errors.New("apt has no Debian mirror: add one to /etc/apt/sources.list.d and run `apt-get update`")
}
