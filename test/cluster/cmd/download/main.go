// Command download downloads programs of Kubernetes into a folder, or updates the
// checksums that the downloads must have.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/chartwright/chartwright/test/cluster/internal/download"
)

// The exit codes.
const (
	failed = 1
	usage  = 2
	// unavailable means that the programs must be built.
	unavailable = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	release := download.Release{Progress: func(format string, args ...any) {
		fmt.Fprintf(stdout, format+"\n", args...) //nolint:errcheck // there is no other output
	}}
	flags := flag.NewFlagSet("download", flag.ContinueOnError)
	flags.SetOutput(stderr)
	mode := flags.String("mode", "auto", "\"auto\" exits with code 3 if a program cannot be downloaded, \"download\" fails, \"build\" downloads nothing")
	checksums := flags.String("checksums", "", "`file` with the SHA-512 of each program")
	folder := flags.String("to", "", "`folder` for the programs")
	pin := flags.Bool("pin", false, "write the checksums of the release, and download no program")
	flags.StringVar(&release.Server, "server", "https://dl.k8s.io/release", "`URL` of the releases")
	flags.StringVar(&release.Version, "version", "", "`version` of Kubernetes")
	flags.StringVar(&release.Platform, "platform", "linux/"+runtime.GOARCH, "`platform` of the programs")
	if err := flags.Parse(args); err != nil {
		return usage
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(stderr, format+"\n", args...) //nolint:errcheck // there is no other output
	}
	if *pin {
		if err := writeChecksums(ctx, release, *checksums, flags.Args()); err != nil {
			say("Error: %v", err)
			return failed
		}
		return 0
	}
	switch *mode {
	case "build":
		return unavailable
	case "auto", "download":
	default:
		say("Error: KUBE_BINARIES: got %q, want auto, download or build", *mode)
		return usage
	}
	sums, err := download.ReadChecksums(*checksums)
	if err == nil {
		err = release.Download(ctx, sums, *folder, flags.Args())
	}
	switch {
	case err == nil:
		return 0
	case *mode == "download" || ctx.Err() != nil || errors.Is(err, os.ErrNotExist):
		say("Error: Kubernetes %s was not downloaded: %v", release.Version, err)
		return failed
	default:
		say("Kubernetes %s is not downloaded, but built: %v", release.Version, err)
		return unavailable
	}
}

// platforms have servers of Kubernetes, and can run the local cluster.
var platforms = []string{"linux/amd64", "linux/arm64"}

// writeChecksums replaces the file with the checksums of a release.
func writeChecksums(ctx context.Context, release download.Release, file string, programs []string) error {
	lines, err := release.Pin(ctx, platforms, programs)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte("# SHA-512 of the programs of Kubernetes: written by make pin-kubernetes.\n"+lines), 0o644)
}
