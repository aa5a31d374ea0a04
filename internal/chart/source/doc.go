// Package source fetches charts by reference: from a folder, a .tgz, a URL, an OCI
// registry or a chart repository.
//
//	reference, err := source.Parse("oci://ghcr.io/shop/charts/web", "", "^1.2")
//	fetched, err := source.Fetch(ctx, reference, source.Options{})
//
//	reference.go   Reference, and Parse for the text that users write
//	options.go     Options: credentials, TLS, limits, and the names of these settings
//	               in error messages
//	fetch.go       Fetch: find the chart, download it, check it
//	repository.go  chart repositories, and the repositories of 'helm repo add'
//	registry.go    OCI registries
//	client.go      the HTTP client with its limits
//	address.go     which addresses may be dialed
//	errors.go      Error, with a reason for conditions and the way out for people
//
// # Limits
//
// All requests of one Fetch use the same HTTP client, also those of Helm's registry
// client. The client limits the time, the number of redirects, and the bytes of all
// responses together. With Options.PublicOnly, it refuses to connect to private, loopback
// and link-local addresses. It checks the address of each connection and not the name, so
// neither a redirect nor a DNS server can bypass the check.
//
// The package does not use Helm's HTTP getter, because the getter accepts neither a
// context nor a limit, and follows redirects on its own. It does not run Helm's
// downloader plugins.
//
// # Credentials
//
// A user name, a password and a client certificate are sent to one host only: the host of
// the registry, the repository or the URL. They are not sent after a redirect to another
// host, nor over plain HTTP unless Options.PlainHTTP is set. Errors contain no
// credentials, and no queries of URLs, because signed URLs have their secret there.
//
// Nothing is written outside of temporary folders. Files of the user's Helm and Docker are
// only read if Options.Helm is set.
package source
