package pki

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
)

// CertPEM encodes the certificate.
func (p Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw})
}

// KeyPEM encodes the private key.
func (p Pair) KeyPEM() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(p.Key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// Write writes the certificate and the key to stem.crt and stem.key. Only the
// owner can read the key.
func (p Pair) Write(stem string) error {
	key, err := p.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.WriteFile(stem+".key", key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(stem+".crt", p.CertPEM(), 0o600)
}

// WriteSigner writes a key for signing tokens to stem.key, and its public key
// to stem.pub.
func WriteSigner(stem string, key *ecdsa.PrivateKey) error {
	private, err := Pair{Key: key}.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.WriteFile(stem+".key", private, 0o600); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return os.WriteFile(stem+".pub", block, 0o600)
}
