package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// fromHelm replaces the name of a repository by its URL, and adds the options that
// 'helm repo add' has stored for the repository.
func (o Options) fromHelm(r Reference) (Reference, Options, error) {
	named := r.Name != "" && !strings.Contains(r.Repo, "://")
	s := o.Settings
	switch {
	case named && r.Repo == "":
		return r, o, problem(ReasonInvalid, "no such file or folder, and no repository", fmt.Sprintf("set %s to the URL of the chart's repository, or %s", s.Repo, forms), nil)
	case named && o.Helm == nil:
		return r, o, problem(ReasonInvalid, fmt.Sprintf("the repository %q is not a URL", r.Repo), "want https://HOST/PATH in "+s.Repo, nil)
	case o.Helm == nil, r.Path != "", r.OCI != "":
		return r, o, nil
	}
	file, err := engine.LoadRepositoryFile(o.Helm.Repositories)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !named {
		// Helm's file matters only for references that name a repository.
		return r, o, nil
	}
	if file == nil {
		file = &engine.RepositoryFile{}
	}
	entry := owner(file, r)
	if entry == nil && named {
		names := make([]string, 0, len(file.Repositories))
		for _, each := range file.Repositories {
			names = append(names, each.Name)
		}
		return r, o, problem(ReasonNotFound, fmt.Sprintf("no such file or folder, and %s has no repository %q%s", o.Helm.Repositories, r.Repo, list(" (only %s)", names)),
			fmt.Sprintf("run 'helm repo add %s URL', or set %s to the URL of the repository", r.Repo, s.Repo), err)
	}
	if entry == nil {
		return r, o, nil
	}
	if named {
		r.Repo = entry.URL
		if err := r.Validate(); err != nil {
			return r, o, err
		}
	}
	o, err = o.with(entry)
	return r, o, err
}

// owner returns the repository of a reference in Helm's file, or nil.
func owner(file *engine.RepositoryFile, r Reference) *engine.RepositoryEntry {
	target := cmp.Or(r.URL, r.Repo)
	for _, entry := range file.Repositories {
		base := strings.TrimSuffix(entry.URL, "/")
		if entry.Name == r.Repo && r.Name != "" || base != "" && (target == base || strings.HasPrefix(target, base+"/")) {
			return entry
		}
	}
	return nil
}

// with adds the options of a repository in Helm's file, where they are not set.
func (o Options) with(entry *engine.RepositoryEntry) (Options, error) {
	if !o.withCredentials() && entry.Username != "" {
		o.Username, o.Password, o.PassCredentials = entry.Username, entry.Password, o.PassCredentials || entry.PassCredentialsAll
	}
	o.InsecureSkipTLSVerify = o.InsecureSkipTLSVerify || engine.SkipsTLSVerify(entry)
	var errs []error
	read := func(into *[]byte, file string) {
		if len(*into) > 0 || file == "" {
			return
		}
		data, err := os.ReadFile(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("repository %s in %s: %w", entry.Name, o.Helm.Repositories, err))
		}
		*into = data
	}
	read(&o.CA, entry.CAFile)
	if len(o.Cert) == 0 {
		read(&o.Cert, entry.CertFile)
		read(&o.Key, entry.KeyFile)
	}
	return o, errors.Join(errs...)
}

// fetchIndexed finds a chart in the index of its repository, and downloads it.
func (c *client) fetchIndexed(ctx context.Context, r Reference) (download, error) {
	index, err := c.index(ctx, r.Repo)
	if err != nil {
		return download{}, err
	}
	version, err := c.pick(index, r)
	if err != nil {
		return download{}, err
	}
	if len(version.URLs) == 0 {
		return download{}, problem(ReasonNotFound, fmt.Sprintf("the index of %s has no URL for version %s", redact(r.Repo), version.Version), "set another version", nil)
	}
	location, err := engine.ResolveReferenceURL(r.Repo, version.URLs[0])
	if err != nil {
		return download{}, problem(ReasonNotFound, "the index has a URL that is not valid", "report it to the owner of the repository", err)
	}
	want := "sha256:" + strings.TrimPrefix(version.Digest, "sha256:")
	if c.options.Known != "" && want == c.options.Known {
		if r.Digest != "" && r.Digest != want {
			return download{}, wrongDigest(redact(location), want, r.Digest, c.options)
		}
		return download{Chart: Chart{Unchanged: true, Location: redact(location), Reference: r}}, nil
	}
	if err := c.checkDowngrade(r.Repo, location); err != nil {
		return download{}, err
	}
	got, err := c.fetchListed(ctx, location)
	got.Reference = r
	if err != nil {
		return got, err
	}
	if sha256Digest.MatchString(want) && r.Digest == "" && digest(got.Archive) != want {
		return got, problem(ReasonDigest, fmt.Sprintf("%s has the digest %s, but the index of the repository has %s", got.Location, digest(got.Archive), want),
			"try again; if it does not help, ask the owner of the repository to update the index", nil)
	}
	return got, nil
}

// checkDowngrade returns an error if the index of a repository with HTTPS has a URL with
// HTTP.
func (c *client) checkDowngrade(base, location string) error {
	to, err := url.Parse(location)
	if err != nil {
		return problem(ReasonNotFound, "the index has a URL that is not valid", "report it to the owner of the repository", err)
	}
	if to.Scheme != "http" || !strings.HasPrefix(strings.ToLower(base), "https://") || c.plainHTTP(to.Host) {
		return nil
	}
	return problem(ReasonRefused, fmt.Sprintf("the index of %s has the URL %s without TLS", redact(base), redact(location)), "ask the owner of the repository for URLs with https", nil)
}

// fetchListed downloads a chart from a URL in an index, which can be on another host.
func (c *client) fetchListed(ctx context.Context, location string) (download, error) {
	if rest, isOCI := strings.CutPrefix(location, "oci://"); isOCI {
		r := parseOCI(rest)
		if err := r.Validate(); err != nil {
			return download{}, err
		}
		other := *c
		other.oci = true
		if other.host = r.Host(); other.host != c.host && !c.options.PassCredentials {
			other.options.Username, other.options.Password = "", ""
		}
		got, err := other.fetchOCI(ctx, r)
		got.Manifest = ""
		return got, err
	}
	if err := (Reference{URL: location}).Validate(); err != nil {
		return download{}, problem(ReasonNotFound, "the index has a URL that is not valid: "+err.Error(), "report it to the owner of the repository", err)
	}
	return c.fetchURL(ctx, location)
}

// index downloads the index of a repository.
func (c *client) index(ctx context.Context, base string) (*engine.RepositoryIndex, error) {
	location, err := engine.ResolveReferenceURL(base, "index.yaml")
	if err != nil {
		return nil, problem(ReasonInvalid, "the URL of the repository is not valid", "want https://HOST/PATH", err)
	}
	data, err := c.getLimited(ctx, location, c.options.MaxIndexBytes)
	if _, large := errors.AsType[*SizeError](err); large {
		return nil, problem(ReasonTooLarge, fmt.Sprintf("the index of the repository exceeds %d bytes", c.options.MaxIndexBytes), "use the URL of the chart, or a registry", err)
	}
	if err != nil {
		found := c.explain(c.host, err)
		if found.Reason == ReasonNotFound {
			found.Message = fmt.Sprintf("%s does not exist (404)", redact(location))
			found.Advice = "check the URL of the repository: its index.yaml must be there"
		}
		return nil, found
	}
	if err := (boundedyaml.Limits{Bytes: 4 * int(c.options.MaxIndexBytes), Values: int(c.options.MaxIndexBytes / bytesPerValue)}).Check(string(data)); err != nil {
		return nil, problem(ReasonTooLarge, redact(location)+": "+err.Error(), "use the URL of the chart, or a registry", err)
	}
	index := &engine.RepositoryIndex{}
	if json.Valid(data) {
		err = json.Unmarshal(data, index)
	} else {
		err = yaml.Unmarshal(data, index)
	}
	if err != nil || len(index.Entries) == 0 {
		return nil, problem(ReasonInvalid, redact(location)+" is not the index of a chart repository", "check the URL of the repository", err)
	}
	for name, versions := range index.Entries {
		index.Entries[name] = slices.DeleteFunc(versions, func(v *engine.RepositoryChart) bool { return v == nil || v.Metadata == nil })
	}
	index.SortEntries()
	return index, nil
}

// bytesPerValue limits the values of an index. Each value of an index that Helm generates
// has more bytes.
const bytesPerValue = 12

// pick returns the version of a chart in an index.
func (c *client) pick(index *engine.RepositoryIndex, r Reference) (*engine.RepositoryChart, error) {
	found, err := index.Get(r.Name, r.Version)
	if err == nil {
		return found, nil
	}
	versions := index.Entries[r.Name]
	if len(versions) == 0 {
		return nil, problem(ReasonNotFound, fmt.Sprintf("the repository has no chart %q%s", r.Name, list(" (only %s)", slices.Sorted(maps.Keys(index.Entries)))), "check the name of the chart", err)
	}
	names := make([]string, 0, len(versions))
	for _, v := range versions {
		names = append(names, v.Version)
	}
	return nil, noVersion(r.Version, names, c.options.Settings, err)
}

// noVersion is the error for a chart without a version that matches.
func noVersion(wanted string, have []string, s Settings, cause error) *Error {
	message := "no version matches " + wanted
	if wanted == "" {
		message = "no stable version"
	}
	return problem(ReasonVersionNotFound, message+list(" (newest: %s)", have), fmt.Sprintf("set %s to one of the versions", s.Version), cause)
}

// maxListed is the maximum number of names in an error.
const maxListed = 5

// list formats the first names, and how many others there are. It is empty without names.
func list(format string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), maxListed)], ", ")
	if more := len(names) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf(format, text)
}
