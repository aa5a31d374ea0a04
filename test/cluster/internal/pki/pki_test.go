package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestServer_TrustedForItsNamesOnly(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Server("api", []string{"localhost"}, []net.IP{net.ParseIP("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "example.com": false, "10.0.0.1": false} {
		_, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots(authority), DNSName: name})
		if (err == nil) != want {
			t.Errorf("%s: %v, want trust: %v", name, err, want)
		}
	}
}

func TestClient_CertificateCannotServe(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Client("ada", "engineers")
	if err != nil {
		t.Fatal(err)
	}
	subject := pair.Cert.Subject
	if subject.CommonName != "ada" || !slices.Equal(subject.Organization, []string{"engineers"}) {
		t.Errorf("the subject is %s", subject)
	}
	for usage, want := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageClientAuth: true, x509.ExtKeyUsageServerAuth: false} {
		_, err := pair.Cert.Verify(x509.VerifyOptions{Roots: roots(authority), KeyUsages: []x509.ExtKeyUsage{usage}})
		if (err == nil) != want {
			t.Errorf("usage %v: %v, want trust: %v", usage, err, want)
		}
	}
}

func TestServer_OtherAuthorityIsNotTrusted(t *testing.T) {
	pair, err := newAuthority(t).Client("ada")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pair.Cert.Verify(x509.VerifyOptions{
		Roots: roots(newAuthority(t)), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err == nil {
		t.Error("trusted")
	}
}

func TestWrite_KeyMatchesAndIsPrivate(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "ca")
	if err := newAuthority(t).Write(stem); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(stem+".crt", stem+".key"); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(stem + ".key")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v", info.Mode())
	}
}

func TestWriteSigner_KeysMatch(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "signer")
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteSigner(stem, key); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(stem + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey.Equal(public) {
		t.Error("the public key does not match")
	}
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func roots(authority *Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(authority.Cert)
	return pool
}
