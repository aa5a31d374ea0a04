// Package download downloads the programs of a Kubernetes release, and accepts
// only files with a pinned checksum.
//
// It imports only the standard library, because the first `make run` builds it
// before everything else: the download then runs while other programs compile.
package download
