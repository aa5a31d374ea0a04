package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// fetchOCI downloads a chart from an OCI registry.
func (c *client) fetchOCI(ctx context.Context, r Reference) (download, error) {
	helm, err := c.registry(r)
	if err != nil {
		return download{}, err
	}
	host := r.Host()
	tag, manifest, err := c.resolve(helm, r)
	if err != nil {
		return download{}, err
	}
	if manifest == c.options.Known {
		return download{Chart: Chart{Unchanged: true, Manifest: manifest, Location: located(r, tag)}}, nil
	}
	if err := c.options.BeforeDownload(ctx); err != nil {
		return download{}, c.explain(host, err)
	}
	options := []engine.PullOption{engine.PullChart(true)}
	if c.options.Keyring != "" {
		options = append(options, engine.PullProvenance(true), engine.PullIgnoreMissingProvenance(true))
	}
	// By digest, because the tag can move.
	result, err := helm.Pull(r.OCI+"@"+manifest, options...)
	if err != nil {
		return download{}, c.explainPull(host, manifest, err)
	}
	got := download{
		Chart: Chart{Archive: result.Chart.Data, Manifest: manifest}, provenance: result.Prov.Data,
		file: result.Chart.Meta.Name + "-" + result.Chart.Meta.Version + ".tgz",
	}
	got.Location = located(r, cmp.Or(tag, result.Chart.Meta.Version))
	if c.options.Keyring != "" && len(got.provenance) == 0 {
		return got, missingProvenance("in "+got.Location, nil)
	}
	return got, nil
}

// located returns the location of a tag, or of the digest if the tag is not known.
func located(r Reference, tag string) string {
	if tag == "" {
		return "oci://" + r.OCI + "@" + r.Digest
	}
	return "oci://" + r.OCI + ":" + tag
}

// registry returns Helm's client for the registry of a reference.
func (c *client) registry(r Reference) (*engine.RegistryClient, error) {
	credential, err := c.credential(r.Host())
	if err != nil {
		return nil, err
	}
	options := []engine.RegistryOption{
		engine.RegistryHTTPClient(&c.Client),
		engine.RegistryAuthorizer(auth.Client{Client: &c.Client, Cache: auth.NewCache(), Credential: credential}),
		// The authorizer has the credentials. Without this option, Helm's client reads
		// the files of the user.
		engine.RegistryCredentialsFile(os.DevNull),
	}
	if c.plainHTTP(r.Host()) {
		options = append(options, engine.RegistryPlainHTTP())
	}
	return engine.NewRegistryClient(options...)
}

// credential returns the function that finds credentials for a host: those of the options,
// else those of the files of Helm and Docker.
func (c *client) credential(host string) (auth.CredentialFunc, error) {
	o := c.options
	if o.withCredentials() {
		return auth.StaticCredential(host, auth.Credential{Username: o.Username, Password: o.Password}), nil
	}
	var store credentials.Store
	var err error
	switch {
	case len(o.DockerConfig) > 0:
		if store, err = credentials.NewMemoryStoreFromDockerConfig(o.DockerConfig); err != nil {
			return nil, problem(ReasonInvalid, "the Docker configuration with the credentials is not valid", "want {\"auths\": …} in "+o.Settings.Credentials, nil)
		}
	case o.Helm != nil:
		if store, err = credentials.NewStore(o.Helm.RegistryConfig, credentials.StoreOptions{DetectDefaultNativeStore: true}); err != nil {
			return nil, problem(ReasonInvalid, "the credentials in "+o.Helm.RegistryConfig+" cannot be read", "run 'helm registry login "+host+"'", err)
		}
		if docker, err := credentials.NewStoreFromDocker(credentials.StoreOptions{DetectDefaultNativeStore: true}); err == nil {
			store = credentials.NewStoreWithFallbacks(store, docker)
		}
	default:
		return nil, nil
	}
	find := credentials.Credential(store)
	return func(ctx context.Context, at string) (auth.Credential, error) {
		found, err := find(ctx, at)
		if found != auth.EmptyCredential {
			c.stored.Store(true)
		}
		return found, err
	}, nil
}

// validTag matches the texts that can be a tag. Constraints such as ^1.2 do not match.
var validTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+\-]{0,127}$`)

// resolve returns the tag of a version, and the digest of its manifest. The tag is empty if
// the reference has only a digest.
func (c *client) resolve(helm *engine.RegistryClient, r Reference) (tag, manifest string, err error) {
	if r.Version == "" && r.Digest != "" {
		return "", r.Digest, nil
	}
	if validTag.MatchString(r.Version) {
		found, err := helm.Resolve(tagged(r, r.Version))
		if err == nil {
			return r.Version, found.Digest.String(), c.matches(r, r.Version, found.Digest.String())
		}
		if explained := c.explain(r.Host(), err); explained.Reason != ReasonNotFound {
			return "", "", explained
		}
	}
	tags, err := helm.Tags(r.OCI)
	if err != nil {
		explained := c.explain(r.Host(), err)
		if explained.Reason == ReasonNotFound {
			explained.Message = fmt.Sprintf("%s has no chart %s (404)", r.Host(), strings.TrimPrefix(r.OCI, r.Host()+"/"))
		}
		return "", "", explained
	}
	if tag, err = engine.MatchingTag(tags, r.Version); err != nil {
		return "", "", noVersion(r.Version, tags, c.options.Settings, err)
	}
	found, err := helm.Resolve(tagged(r, tag))
	if err != nil {
		return "", "", c.explain(r.Host(), err)
	}
	return tag, found.Digest.String(), c.matches(r, tag, found.Digest.String())
}

// tagged returns the reference of a version. Tags contain no plus signs: 'helm push' writes
// underscores.
func tagged(r Reference, version string) string {
	return r.OCI + ":" + strings.ReplaceAll(version, "+", "_")
}

// matches returns an error if a tag has another digest than the reference.
func (c *client) matches(r Reference, tag, manifest string) error {
	if r.Digest == "" || r.Digest == manifest {
		return nil
	}
	return wrongDigest("version "+tag, manifest, r.Digest, c.options)
}

// explainPull returns the Error for an error of Helm's client.
func (c *client) explainPull(host, manifest string, err error) *Error {
	text := err.Error()
	switch {
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrInvalidDescriptorSize), errors.Is(err, content.ErrTrailingData), strings.Contains(text, "mismatch Content-Length"):
		return problem(ReasonDigest, fmt.Sprintf("%s sent other data than the manifest %s lists: %s", host, manifest, innermost(err)), "push the chart again", err)
	case strings.HasPrefix(text, "manifest does not contain"), strings.HasPrefix(text, "could not load config"):
		return problem(ReasonChart, "the manifest "+manifest+" is not that of a Helm chart", "want a chart that 'helm push' has uploaded, not an image", err)
	}
	explained := c.explain(host, err)
	if explained.Reason == ReasonNotFound {
		explained.Message = fmt.Sprintf("%s has no chart with the digest %s (404)", host, manifest)
		explained.Advice = "check the digest: want the digest of the manifest, as 'helm push' prints it"
	}
	return explained
}
