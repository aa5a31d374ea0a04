package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	architecture = runtime.GOARCH
	searchPath   = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Names of images that only the tests use.
const (
	operatorImage = "node.local/chartwright:test"
	nextImage     = "node.local/chartwright:next"
	pauseImage    = "node.local/pause:1"
	corednsImage  = "node.local/coredns:1"
	vcsimImage    = "node.local/vcsim:1"
	toolsImage    = "node.local/tools:1"
)

// Debian's nginx, with curl and busybox for the tests of charts.
var web = debian{suite: "bookworm", packages: []string{"nginx-light", "curl", "busybox-static"}}

// postgresSuites are the Debian suites with the major versions of PostgreSQL.
var postgresSuites = map[string]string{"15": "bookworm", "17": "trixie", "18": "forky"}

// testedMajors are the major versions of PostgreSQL that the tests use, in
// addition to that of the chart. Not 17: Debian's PostgreSQL 17.12 is newer than its
// PostgreSQL 18.6, which does not support the column option pg_attver of 17.12.
var testedMajors = []string{"15", "18"}

// tutorialImage is the image of the Database in its tutorial, which names no tag.
const tutorialImage = "docker.io/library/super-great-docker-image:18"

// list returns all images for the tests with containers.
func list(ctx context.Context, o options) ([]image, error) {
	shell := busybox{from: web}
	images := []image{
		operator(operatorImage, o.program("chartwright")),
		operator(nextImage, o.program("node", "chartwright-next")),
		// Only the namespaces of its process are used.
		{pauseImage, []layer{shell}, v1.Config{Entrypoint: []string{"/bin/sleep", "inf"}, User: "65535"}},
		{corednsImage, []layer{program("coredns", o.program("node", "coredns"))}, v1.Config{Entrypoint: []string{"/coredns"}, User: "65532"}},
		{vcsimImage, []layer{program("vcsim", o.program("vcsim"))}, v1.Config{Entrypoint: []string{"/vcsim"}, Cmd: []string{"-l", "0.0.0.0:8989"}, User: "65532"}},
		{toolsImage, []layer{web}, v1.Config{Cmd: []string{"sh"}, Env: []string{searchPath}}},
	}
	for _, kind := range []struct {
		sample string
		layers []layer
		config v1.Config
	}{
		{"tutorials_v1_ovhnginx", []layer{web, nginxConfig}, nginxRuns},
		{"experiments_v1alpha1_experimental", []layer{web, nginxConfig}, nginxRuns},
		{"operator_v1alpha1_config", []layer{web, nginxConfig}, nginxRuns},
		{"app_v1alpha1_podset", []layer{shell}, v1.Config{Cmd: []string{"sh"}, Env: []string{searchPath}}},
		{
			"vm_v1alpha1_vmgroup",
			[]layer{shell, program("usr/local/bin/govc", o.program("govc"))},
			v1.Config{Cmd: []string{"govc"}, User: "10001", Env: []string{searchPath}},
		},
	} {
		found, err := references(ctx, o, kind.sample, func(map[string]any) {})
		if err != nil {
			return nil, err
		}
		for _, reference := range found {
			images = append(images, image{reference, kind.layers, kind.config})
		}
	}
	databases, err := databases(ctx, o)
	if err != nil {
		return nil, err
	}
	return unique(append(images, databases...)), nil
}

// databases returns the images of the kind Database: the chart's own, and the
// major versions between which the tests upgrade.
func databases(ctx context.Context, o options) ([]image, error) {
	found, err := references(ctx, o, "stable_v1_database", func(spec map[string]any) {
		delete(spec, "image")
		spec["metrics"] = map[string]any{"enabled": true}
	})
	if err != nil {
		return nil, err
	}
	var images []image
	for _, reference := range found {
		if strings.Contains(repository(reference), "exporter") {
			images = append(images, image{
				reference, []layer{program("bin/postgres_exporter", o.program("postgres_exporter"))},
				v1.Config{Entrypoint: []string{"/bin/postgres_exporter"}, User: "65534"},
			})
			continue
		}
		names := map[string]string{reference: majorVersion(reference), tutorialImage: "18"}
		for _, major := range testedMajors {
			names[repository(reference)+":"+major] = major
		}
		for name, major := range names {
			suite, known := postgresSuites[major]
			if !known {
				return nil, fmt.Errorf("image %s: no Debian suite has PostgreSQL %s: add one to postgresSuites", name, major)
			}
			images = append(images, postgres(name, major, suite))
		}
	}
	return images, nil
}

// unique removes images that several charts use.
func unique(images []image) []image {
	var all []image
	seen := map[string]bool{}
	for _, i := range images {
		if !seen[i.reference] {
			seen[i.reference] = true
			all = append(all, i)
		}
	}
	return all
}

// program returns the path of a program.
func (o options) program(path ...string) string {
	return filepath.Join(append([]string{o.bin}, path...)...)
}
