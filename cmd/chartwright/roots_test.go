package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestRoots_WithoutFiles runs itself in a process that finds no CA certificates in files,
// as in the image. The binary must have its own, or it cannot pull charts from registries.
func TestRoots_WithoutFiles(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") != "/nonexistent" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRoots_WithoutFiles$") //nolint:gosec // this test
		again.Env = append(os.Environ(), "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	verified := 0
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if root.Constraint != nil || time.Now().After(certificate.NotAfter) {
			continue
		}
		if _, err := certificate.Verify(x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			t.Errorf("%s: %v", certificate.Subject, err)
		}
		verified++
	}
	if verified < 50 {
		t.Errorf("only %d CA certificates are trusted", verified)
	}
}
