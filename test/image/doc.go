// Command image builds images without a container engine: the image of the
// operator, and the images that the tests with containers need.
//
// The latter have the names of the images in charts/, but consist of Debian
// packages and of programs that `make` builds, because this machine may only have
// access to a Debian mirror and to Go modules.
//
// Where to start reading: list.go contains the images; build.go builds what
// changed; layer.go, debian.go and busybox.go create layers; references.go finds
// the names of the images. layout.go writes the operator's image for several
// platforms, and check.go checks it.
package main
