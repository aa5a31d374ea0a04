package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Chart is a fetched chart.
type Chart struct {
	// Name and Version are those in Chart.yaml.
	Name, Version string
	// Archive is the content of the .tgz. It is nil if the reference is a folder.
	Archive []byte
	// Digest is the digest of Archive: sha256:0123….
	Digest string
	// Manifest is the digest of the manifest, if the chart is from an OCI registry.
	Manifest string
	// Location is where the chart was found: a path, a URL or an OCI reference with its
	// version. It contains no credentials.
	Location string
	// Reference finds newer versions of the chart: it has the URL in place of the name of
	// a repository, and no digest.
	Reference Reference
	// Unchanged: the chart has the digest Options.Known. Only Digest or Manifest, Location
	// and Reference are set.
	Unchanged bool
	// SignedBy is the identity of the signer, if a keyring is set.
	SignedBy string
}

// Pinned returns the digest that a Reference needs to fetch the same chart again. It is
// empty for a folder.
func (c Chart) Pinned() string {
	return cmp.Or(c.Manifest, c.Digest)
}

// download is a chart that is not checked yet.
type download struct {
	Chart
	provenance []byte
	// file is the name of the .tgz in the provenance file.
	file string
}

// Fetch fetches a chart. Its errors are of the type *Error.
func Fetch(ctx context.Context, r Reference, o Options) (Chart, error) {
	o = o.complete()
	fetched, err := fetch(ctx, r, o)
	if err == nil {
		return fetched, nil
	}
	found, ok := errors.AsType[*Error](err)
	if !ok {
		found = problem(ReasonInvalid, redact(err.Error()), "", err)
	}
	found.Reference = r
	return Chart{}, found
}

func fetch(ctx context.Context, r Reference, o Options) (Chart, error) {
	if err := errors.Join(r.Validate(), o.validate()); err != nil {
		return Chart{}, err
	}
	if info, err := os.Stat(r.Path); err == nil && info.IsDir() && r.Path != "" {
		if o.Keyring != "" {
			return Chart{}, problem(ReasonSignature, "a folder has no signature", "want a .tgz with its provenance file, as 'helm package --sign' writes them", nil)
		}
		return openFolder(r)
	}
	var err error
	if r, o, err = o.fromHelm(r); err != nil {
		return Chart{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c, err := newClient(ctx, o, r.Host())
	if err != nil {
		return Chart{}, err
	}
	defer c.CloseIdleConnections()
	c.oci = r.OCI != ""
	var got download
	switch {
	case r.Path != "":
		got, err = readArchive(r, o)
	case r.URL != "":
		got, err = c.fetchURL(ctx, r.URL)
	case r.OCI != "":
		got, err = c.fetchOCI(ctx, r)
	default:
		got, err = c.fetchIndexed(ctx, r)
	}
	if err != nil {
		return Chart{}, err
	}
	if got.Reference == (Reference{}) {
		got.Reference = r
	}
	return got.check(r, o)
}

// openFolder reads the name and the version of a chart in a folder.
func openFolder(r Reference) (Chart, error) {
	data, err := os.ReadFile(filepath.Join(r.Path, "Chart.yaml"))
	if err != nil {
		return Chart{}, problem(ReasonChart, "the folder contains no Chart.yaml", "want the folder of a chart", err)
	}
	metadata, err := parseMetadata(data)
	if err != nil {
		return Chart{}, err
	}
	if err := satisfies(metadata.Version, r.Version); err != nil {
		return Chart{}, err
	}
	return Chart{Name: metadata.Name, Version: metadata.Version, Location: r.Path, Reference: Reference{Path: r.Path}}, nil
}

// readArchive reads a .tgz and its provenance file.
func readArchive(r Reference, o Options) (download, error) {
	got := download{file: filepath.Base(r.Path), Chart: Chart{Location: r.Path}}
	file, err := os.Open(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return got, problem(ReasonNotFound, "not found", forms, err)
	}
	if err != nil {
		return got, err
	}
	defer func() { _ = file.Close() }()
	if got.Archive, err = io.ReadAll(io.LimitReader(file, o.MaxBytes+1)); err != nil {
		return got, err
	}
	if int64(len(got.Archive)) > o.MaxBytes {
		size := &SizeError{Limit: o.MaxBytes}
		return got, problem(ReasonTooLarge, size.Error(), raise("use a smaller chart", o.Settings.MaxBytes), size)
	}
	if o.Keyring != "" {
		got.provenance, err = os.ReadFile(r.Path + ".prov")
		if err != nil {
			return got, missingProvenance(r.Path+".prov", err)
		}
	}
	return got, nil
}

// fetchURL downloads a .tgz and its provenance file.
func (c *client) fetchURL(ctx context.Context, text string) (download, error) {
	u, err := url.Parse(text)
	if err != nil {
		return download{}, problem(ReasonInvalid, "the URL is not valid", forms, err)
	}
	got := download{file: path.Base(u.Path), Chart: Chart{Location: redact(text)}}
	if got.Archive, err = c.get(ctx, text); err != nil {
		return got, c.explain(u.Host, err)
	}
	if c.options.Keyring != "" {
		u.Path, u.RawPath = u.Path+".prov", ""
		if got.provenance, err = c.get(ctx, u.String()); err != nil {
			if status(err) != 0 {
				return got, missingProvenance(redact(u.String()), err)
			}
			return got, c.explain(u.Host, err)
		}
	}
	return got, nil
}

// check checks the digest, the content and the signature of a download.
func (d download) check(r Reference, o Options) (Chart, error) {
	fetched := d.Chart
	fetched.Reference.Digest = ""
	if fetched.Unchanged {
		if fetched.Manifest == "" {
			fetched.Digest = o.Known
		}
		return fetched, nil
	}
	fetched.Digest = digest(fetched.Archive)
	if r.Digest != "" && r.OCI == "" && r.Digest != fetched.Digest {
		return fetched, wrongDigest(d.Location, fetched.Digest, r.Digest, o)
	}
	metadata, err := readMetadata(d.Archive)
	if err != nil {
		return fetched, err
	}
	fetched.Name, fetched.Version = metadata.Name, metadata.Version
	if r.URL != "" || r.Path != "" {
		if err := satisfies(metadata.Version, r.Version); err != nil {
			return fetched, err
		}
	}
	if o.Keyring != "" {
		fetched.SignedBy, err = d.verify(o)
	}
	return fetched, err
}

// digest returns the digest of a .tgz.
func digest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func wrongDigest(location, got, want string, o Options) *Error {
	return problem(ReasonDigest, fmt.Sprintf("%s has the digest %s, want %s", location, got, want),
		fmt.Sprintf("find out why the chart differs; if the new chart is intended, change %s", o.Settings.Digest), nil)
}

// satisfies returns an error if a version is not the requested one. A constraint that
// cannot be parsed never matches.
func satisfies(version, requested string) error {
	if requested == "" || requested == version {
		return nil
	}
	constraint, err := semver.NewConstraint(requested)
	if err == nil {
		var parsed *semver.Version
		if parsed, err = semver.NewVersion(version); err == nil && constraint.Check(parsed) {
			return nil
		}
	}
	return problem(ReasonVersionNotFound, fmt.Sprintf("the chart has version %s, want %s", version, requested), "change the requested version, or the reference", err)
}

// readMetadata returns the content of Chart.yaml in a .tgz.
func readMetadata(archive []byte) (*engine.Metadata, error) {
	const advice = "want a .tgz as 'helm package' writes it"
	data, err := chart.ArchiveMetadata(bytes.NewReader(archive))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || err != nil && strings.Contains(err.Error(), "unexpected EOF"):
		return nil, problem(ReasonChart, fmt.Sprintf("the archive is truncated after %d bytes", len(archive)), "download or upload the chart again", err)
	case err != nil:
		return nil, problem(ReasonChart, "not the archive of a chart: "+err.Error(), advice, err)
	case data == nil:
		return nil, problem(ReasonChart, "the archive contains no Chart.yaml", advice, nil)
	}
	if err := boundedyaml.Chart().Check(string(data)); err != nil {
		return nil, problem(ReasonChart, "Chart.yaml is not valid: "+err.Error(), advice, err)
	}
	return parseMetadata(data)
}

func parseMetadata(data []byte) (*engine.Metadata, error) {
	metadata := &engine.Metadata{}
	err := yaml.Unmarshal(data, metadata)
	if err == nil {
		err = metadata.Validate()
	}
	if err != nil {
		return nil, problem(ReasonChart, "Chart.yaml is not valid: "+err.Error(), "run 'helm lint' on the chart", err)
	}
	return metadata, nil
}

func missingProvenance(file string, err error) *Error {
	return problem(ReasonSignature, "no provenance file "+file, "sign the chart with 'helm package --sign', or do not request verification", err)
}

// verify returns the signer of a chart.
func (d download) verify(o Options) (string, error) {
	keys, err := engine.NewSignatory(o.Keyring, "")
	if err != nil {
		return "", problem(ReasonSignature, fmt.Sprintf("the keyring %s cannot be read: %v", o.Keyring, err), "set "+o.Settings.Keyring+" to a file that 'gpg --export' writes", err)
	}
	verified, err := engine.VerifyArchive(keys, d.Archive, d.provenance, filepath.Base(d.file))
	if err != nil {
		return "", problem(ReasonSignature, "the signature is not valid: "+err.Error(), "check the chart's provenance file and the keyring", err)
	}
	for name := range verified.SignedBy.Identities {
		return name, nil
	}
	return verified.SignedBy.PrimaryKey.KeyIdString(), nil
}
