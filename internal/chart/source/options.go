package source

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Options say how to fetch a chart. The zero value fetches public charts over HTTPS.
type Options struct {
	// Username and Password are sent to the host of the reference.
	Username, Password string
	// PassCredentials sends them also to other hosts that the index of a repository
	// names.
	PassCredentials bool
	// DockerConfig is the content of a config.json with credentials of registries, as in
	// a Secret of type kubernetes.io/dockerconfigjson.
	DockerConfig []byte

	// CA has certificates in PEM that are trusted in place of those of the system. Cert
	// and Key are a client certificate in PEM.
	CA, Cert, Key []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// PlainHTTP uses HTTP for OCI registries, and allows credentials over HTTP. It is for
	// the host of the reference only.
	PlainHTTP bool

	// Keyring is the path of a keyring with public keys. If it is set, the chart needs a
	// provenance file with a valid signature of one of the keys.
	Keyring string

	// Helm has the files of the user's Helm. If it is nil, neither these files nor those
	// of Docker are read.
	Helm *Helm

	// MaxBytes limits the bytes of all downloads of one Fetch together. The default is
	// 100 MiB.
	MaxBytes int64
	// MaxIndexBytes limits the index of a repository. The default is MaxBytes.
	MaxIndexBytes int64
	// MaxRedirects limits the redirects of one request. The default is 10.
	MaxRedirects int
	// Timeout limits the time of one Fetch. The default is 2 minutes, as in Helm.
	Timeout time.Duration

	// Known is the digest of a chart that is not downloaded again. It has no effect for a
	// path or a URL, whose digest is known only after the download.
	Known string
	// BeforeDownload is called before each download of an index or a chart, to limit how
	// many are in memory. The default is no limit.
	BeforeDownload func(context.Context) error

	// PublicOnly refuses connections to addresses that are not public. AllowHosts lists
	// the exceptions, as HOST or HOST:PORT.
	PublicOnly bool
	AllowHosts []string

	// Settings has the names of the options in error messages. The default is Flags.
	Settings Settings
}

// Helm has the paths of the files that Helm uses.
type Helm struct {
	// Repositories is the file that 'helm repo add' writes. RegistryConfig is the file
	// that 'helm registry login' writes.
	Repositories, RegistryConfig string
}

// UserHelm returns the files of the user's Helm, according to Helm's environment
// variables.
func UserHelm() *Helm {
	env := engine.NewSettings()
	return &Helm{Repositories: env.RepositoryConfig, RegistryConfig: env.RegistryConfig}
}

// Settings has the names of options in error messages, because the same option is a flag
// of a command or a field of a custom resource. Set all, except the limits and Login.
type Settings struct {
	Credentials, CA, InsecureSkipTLSVerify, PlainHTTP string
	Version, Digest, Repo, Keyring                    string
	AllowHosts, MaxBytes, Timeout                     string
	// Login is another way to set credentials for a registry, with %s for its host.
	Login string
}

// Flags has the names of the options as flags of the commands.
var Flags = Settings{
	Credentials: "--username and --password-stdin", CA: "--ca-file", InsecureSkipTLSVerify: "--insecure-skip-tls-verify",
	PlainHTTP: "--plain-http", Version: "--chart-version", Digest: "the digest", Repo: "--repo", Keyring: "--keyring",
	Login: ", or run 'helm registry login %s'",
}

// complete returns the options with their defaults.
func (o Options) complete() Options {
	o.MaxBytes = cmp.Or(o.MaxBytes, 100<<20)
	o.MaxIndexBytes = min(cmp.Or(o.MaxIndexBytes, o.MaxBytes), o.MaxBytes)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 10)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.Settings = cmp.Or(o.Settings, Flags)
	if o.BeforeDownload == nil {
		o.BeforeDownload = func(context.Context) error { return nil }
	}
	return o
}

// withCredentials reports whether the options have credentials for a host.
func (o Options) withCredentials() bool { return o.Username != "" || o.Password != "" }

// validate returns an error if options contradict each other or are incomplete.
func (o Options) validate() error {
	if (len(o.Cert) == 0) != (len(o.Key) == 0) {
		return errors.New("a client certificate needs both the certificate and its key")
	}
	if o.Password != "" && o.Username == "" {
		return errors.New("a password needs a user name: set " + o.Settings.Credentials)
	}
	return nil
}

// tls returns the TLS configuration for the host of the reference, or for others, which do
// not get the client certificate.
func (o Options) tls(own bool) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.InsecureSkipTLSVerify} //nolint:gosec // requested by the user
	if len(o.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, fmt.Errorf("%s: want certificates in PEM", o.Settings.CA)
		}
	}
	if own && len(o.Cert) > 0 {
		pair, err := tls.X509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
