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

// validity is long enough for a cluster that a developer leaves running.
const validity = 365 * 24 * time.Hour

// Pair is a certificate and its private key.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// Authority signs certificates.
type Authority struct{ Pair }

// NewAuthority makes an authority that trusts itself.
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

// Client makes the certificate that a user logs in with: Kubernetes takes its
// common name for the user and its organizations for the groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
}

// Server makes the certificate of a server that is reached by these names and
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

// sign completes a certificate and signs it, with its own key when there is no
// authority.
func sign(cert *x509.Certificate, by *Authority) (Pair, error) {
	key, err := NewKey()
	if err != nil {
		return Pair{}, err
	}
	cert.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("no random serial number: %w", err)
	}
	now := time.Now()
	// A minute's grace for clocks that are set back a little.
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

// NewKey makes a private key. P-256 is made in microseconds, where an RSA key
// would cost a noticeable part of the cluster's start.
func NewKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
