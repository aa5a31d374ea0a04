package download

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Release is a version of Kubernetes for one platform on a server with the layout
// of https://dl.k8s.io/release.
type Release struct {
	// Server is a URL without the version.
	Server  string
	Version string
	// Platform is an operating system and an architecture, such as linux/amd64.
	Platform string
	// Stall is the maximum time without data; 0 means 30 seconds.
	Stall time.Duration
	// Progress is called after each program.
	Progress func(format string, args ...any)
}

// defaultStall is the default of Release.Stall. A download as a whole has no
// deadline, because a slow connection is better than a build.
const defaultStall = 30 * time.Second

// client gives up soon if no connection is possible, for machines without access to
// the server.
var client = &http.Client{Transport: &http.Transport{
	Proxy:               http.ProxyFromEnvironment,
	DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
	TLSHandshakeTimeout: 10 * time.Second,
	ForceAttemptHTTP2:   true,
}}

// path returns the path of a program on the server.
func (r Release) path(program string) string {
	return r.Version + "/bin/" + r.Platform + "/" + program
}

// Download puts the programs into a folder, all of them or none. Nothing is
// requested if the checksum of a program is not pinned.
func (r Release) Download(ctx context.Context, sums Checksums, folder string, programs []string) error {
	for _, program := range programs {
		if sums[r.path(program)] == "" {
			return fmt.Errorf("no checksum of %s is pinned (make pin-kubernetes)", r.path(program))
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	// The temporary files are in the same file system, so that they can be renamed.
	scratch, err := os.MkdirTemp(folder, ".download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the next build replaces the folder
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var group sync.WaitGroup
	failures := make([]error, len(programs))
	for i, program := range programs {
		group.Go(func() {
			if failures[i] = r.fetch(ctx, sums[r.path(program)], filepath.Join(scratch, program), program); failures[i] != nil {
				cancel()
			}
		})
	}
	group.Wait()
	if err := cause(failures); err != nil {
		return err
	}
	for _, program := range programs {
		if err := os.Rename(filepath.Join(scratch, program), filepath.Join(folder, program)); err != nil {
			return err
		}
	}
	return nil
}

// cause returns the error that made the other downloads end, if there is one.
func cause(failures []error) error {
	for _, err := range failures {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return firstError(failures...)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fetch writes one program to a file and checks it.
func (r Release) fetch(ctx context.Context, want, file, program string) error {
	began := time.Now()
	body, size, err := r.open(ctx, r.path(program))
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	hash := sha512.New()
	n, err := io.Copy(io.MultiWriter(out, hash), body)
	if err = firstError(err, out.Close()); err != nil {
		return fmt.Errorf("%s broke off after %d of %d bytes: %w", r.path(program), n, size, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-512 %s, want %s", r.path(program), got, want)
	}
	r.Progress("downloaded %-24s %4d MB in %3.0f s", program, n>>20, time.Since(began).Seconds())
	return nil
}

// open requests a file. Reading it fails if no data arrives for a while.
func (r Release) open(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	stall := r.Stall
	if stall == 0 {
		stall = defaultStall
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(stall, func() { cancel(fmt.Errorf("no data for %s", stall)) })
	fail := func(err error) (io.ReadCloser, int64, error) {
		watch.Stop()
		// The cause is more precise than "context canceled", and the URL is in the
		// message already.
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		cancel(nil)
		return nil, 0, fmt.Errorf("%s/%s: %w", r.Server, path, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Server+"/"+path, http.NoBody)
	if err != nil {
		return fail(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fail(err)
	}
	if response.StatusCode != http.StatusOK {
		return fail(firstError(response.Body.Close(), errors.New(response.Status)))
	}
	return &watchedBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel, watch: watch, stall: stall}, response.ContentLength, nil
}

// watchedBody is a body whose request a timer cancels unless data arrives.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	watch  *time.Timer
	stall  time.Duration
}

// Read reads data, and restarts the timer.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.Reset(b.stall)
	}
	if cause := context.Cause(b.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close stops the timer, too.
func (b *watchedBody) Close() error {
	b.watch.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
