package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is long enough for a cluster that keeps running on a developer's
// machine.
const validity = 365 * 24 * time.Hour

// Pair is a certificate and its private key.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// Authority signs certificates.
type Authority struct{ Pair }

// NewAuthority creates a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	pair, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil)
	if err != nil {
		return nil, err
	}
	return &Authority{pair}, nil
}

// Client creates a client certificate. Kubernetes reads the user from its
// common name and the groups from its organizations.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
}

// Server creates the certificate of a server with the given names and
// addresses.
func (a *Authority) Server(name string, dnsNames []string, addresses []net.IP) (Pair, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    dnsNames,
		IPAddresses: addresses,
	}, a)
}

// sign completes and signs a certificate. Without an authority, the certificate
// is self-signed.
func sign(cert *x509.Certificate, by *Authority) (Pair, error) {
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("cannot create a serial number: %w", err)
	}
	now := time.Now()
	// Tolerate clocks that are one minute slow.
	cert.NotBefore, cert.NotAfter = now.Add(-time.Minute), now.Add(validity)

	parent, parentKey := cert, key
	if by != nil {
		parent, parentKey = by.Cert, by.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot sign a certificate for %s: %w", cert.Subject, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: signed, Key: key}, nil
}

// NewKey creates a private key. Creating a P-256 key takes microseconds; an RSA
// key would slow down the start of the cluster.
func NewKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
