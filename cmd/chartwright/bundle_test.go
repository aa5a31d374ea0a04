package main

import (
	"os"
	"strings"
	"testing"
)

func TestBundle_WritesAndChecks(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init", "shop", "--domain", "example.com"}, {"add", "--new", "web", "--group", "shop", "--version", "v1"}} {
		if _, stderr, err := execute(t, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, stderr)
		}
		if args[0] == "init" {
			t.Chdir("shop")
		}
	}
	base := []string{"bundle", "--version", "1.2.3", "--image", "shop:v1.2.3", "--channels", "candidate,stable", "--created-at", "2026-01-31T12:00:00Z", "--replaces", "1.2.2"}
	const note = "Note: ClusterServiceVersion: spec.maintainers: "
	for _, test := range []struct {
		name   string
		args   []string
		stdout string
		err    string
	}{
		{"missing files", []string{"--check"}, "", "run 'chartwright bundle':\n  bundle.Dockerfile: missing\n  bundle/manifests/"},
		{"dry run", []string{"--dry-run"}, "create    bundle/metadata/annotations.yaml\n", ""},
		{"dry run wrote nothing", []string{"--check"}, "", "bundle/metadata/annotations.yaml: missing"},
		{"write", nil, "created   bundle/metadata/annotations.yaml\n", ""},
		{"up to date", []string{"--check"}, "", ""},
		{"write again", nil, "everything is up to date\n", ""},
		{"notes are errors", []string{"--check", "--strict"}, "", "--strict: a note requires action"},
		{"other version", []string{"--check", "--version", "1.2.4"}, "", "bundle/manifests/shop.clusterserviceversion.yaml: outdated"},
	} {
		stdout, stderr, err := execute(t, append(base, test.args...)...)
		if !strings.Contains(stdout, test.stdout) || test.stdout == "" && stdout != "" || !strings.Contains(stderr, note) {
			t.Errorf("%s: stdout %q, want %q; stderr %q", test.name, stdout, test.stdout, stderr)
		}
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", test.name, err, test.err)
		}
	}
	csv, err := os.ReadFile("bundle/manifests/shop.clusterserviceversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"  name: shop.v1.2.3\n", "createdAt: \"2026-01-31T12:00:00Z\"\n", "replaces: shop.v1.2.2\n", "image: shop:v1.2.3\n"} {
		if !strings.Contains(string(csv), line) {
			t.Errorf("no %q in\n%s", line, csv)
		}
	}

	for args, want := range map[string]string{
		"bundle":                                          `required flag(s) "version" not set`,
		"bundle --version 1.2.3":                          "set --image",
		"bundle --version 1 --image a":                    `version "1": want a semantic version`,
		"bundle --version 1.2.3 --created-at today":       "--created-at today: expected a time such as 2026-01-31T12:00:00Z",
		"bundle --version 1.2.3 --watches-file gone.yaml": "gone.yaml not found: run the command in the folder of a project",
		"bundle --version 1.2.3 --config-dir gone":        "gone",
	} {
		if stdout, _, err := execute(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) || stdout != "" {
			t.Errorf("%s: %v, want %q; stdout %q", args, err, want, stdout)
		}
	}
}
