package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
)

// Reference says where a chart is. Exactly one of Path, URL, OCI and Name is set.
type Reference struct {
	// Path is a folder or a .tgz.
	Path string
	// URL is the http or https URL of a .tgz.
	URL string
	// OCI is the repository of the chart in a registry, without oci://, such as
	// ghcr.io/shop/charts/web.
	OCI string
	// Name is the name of a chart in a chart repository. Repo is the URL of the
	// repository, or its name in the repositories of 'helm repo add'.
	Repo, Name string

	// Version is a version such as 1.2.3, or a constraint such as ^1.2. If it is empty,
	// the newest stable version is fetched.
	Version string
	// Digest is empty or the expected digest, such as sha256:0123…: of the manifest in an
	// OCI registry, else of the .tgz.
	Digest string
}

// forms lists the valid references, for errors.
const forms = "want a folder, a .tgz, https://HOST/PATH.tgz, oci://HOST/PATH[:VERSION|@DIGEST], REPOSITORY/NAME or, with the URL of a repository, NAME"

// Parse returns the reference that a user means by a text, the URL or name of a repository,
// and a version. The last two can be empty. A text that is an existing file or folder is a
// path, unless there is a repository.
func Parse(text, repo, version string) (Reference, error) {
	r, err := parse(strings.TrimSpace(text), strings.TrimSpace(repo))
	if err != nil {
		return r, err
	}
	if version = strings.TrimSpace(version); version != "" {
		if r.Version != "" && r.Version != version {
			return r, fmt.Errorf("chart %s: the reference has version %s, but version %s is requested: set one of them", r, r.Version, version)
		}
		r.Version = version
	}
	return r, r.Validate()
}

func parse(text, repo string) (Reference, error) {
	scheme, rest, isURL := strings.Cut(text, "://")
	switch {
	case text == "":
		return Reference{}, errors.New("chart: the reference is empty: " + forms)
	case repo != "" && isURL:
		return Reference{}, fmt.Errorf("chart %s: a URL and a repository cannot be combined: for a repository, want only the chart's name", redact(text))
	case repo != "":
		return Reference{Repo: repo, Name: text}, nil
	case isURL && scheme == "oci":
		if at := strings.Index(rest, "@"); at >= 0 && !strings.Contains(rest[:at], "/") {
			return Reference{}, fmt.Errorf("chart %s: the reference contains credentials: remove them, and set user name and password separately", redact(text))
		}
		return parseOCI(rest), nil
	case isURL:
		return Reference{URL: text}, nil
	}
	if _, err := os.Stat(text); err == nil || isPath(text) {
		return Reference{Path: text}, nil
	}
	if of, name, has := strings.Cut(text, "/"); has {
		return Reference{Repo: of, Name: name}, nil
	}
	return Reference{Name: text}, nil
}

// isPath reports whether a text can only be meant as a path.
func isPath(text string) bool {
	return path.IsAbs(text) || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") ||
		strings.HasSuffix(text, ".tgz") || strings.HasSuffix(text, "/") || strings.Contains(text, `\`) || strings.Count(text, "/") > 1
}

// parseOCI splits HOST/PATH[:TAG][@DIGEST].
func parseOCI(text string) Reference {
	var r Reference
	r.OCI, r.Digest, _ = strings.Cut(text, "@")
	if colon := strings.LastIndex(r.OCI, ":"); colon > strings.LastIndex(r.OCI, "/") {
		r.OCI, r.Version = r.OCI[:colon], r.OCI[colon+1:]
	}
	return r
}

// Remote reports whether the chart is fetched over the network.
func (r Reference) Remote() bool { return r.Path == "" }

// sha256Digest matches the digests that are supported.
var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Validate returns an error if the reference is incomplete or contradictory.
func (r Reference) Validate() error {
	set := 0
	for _, field := range []string{r.Path, r.URL, r.OCI, r.Name} {
		if field != "" {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("chart %s: %s", r, forms)
	}
	if r.Digest != "" && !sha256Digest.MatchString(r.Digest) {
		return fmt.Errorf("chart %s: digest %q: want sha256: and 64 hexadecimal digits", r, r.Digest)
	}
	switch {
	case r.URL != "":
		return r.validateURL(r.URL)
	case r.OCI != "":
		return r.validateOCI()
	case strings.Contains(r.Repo, "://"):
		return r.validateURL(r.Repo)
	}
	return nil
}

func (r Reference) validateURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("chart %s: the URL is not valid: %s", r, forms)
	case u.Scheme == "oci":
		return fmt.Errorf("chart %s: an OCI registry is not a chart repository: want oci://%s/%s as the chart", r, strings.TrimSuffix(u.Host+u.Path, "/"), r.Name)
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("chart %s: unknown scheme %s: %s", r, u.Scheme, forms)
	case u.Host == "":
		return fmt.Errorf("chart %s: the URL has no host: %s", r, forms)
	case u.User != nil:
		return fmt.Errorf("chart %s: the URL contains credentials: remove them from the URL, and set user name and password separately", r)
	}
	return nil
}

// ociName matches HOST[:PORT]/PATH.
var ociName = regexp.MustCompile(`^[A-Za-z0-9.\-]+(:\d+)?(/[a-z0-9]+([._\-]+[a-z0-9]+)*)+$|^\[[0-9a-fA-F:.]+\](:\d+)?(/[a-z0-9]+([._\-]+[a-z0-9]+)*)+$`)

func (r Reference) validateOCI() error {
	if !ociName.MatchString(r.OCI) {
		return fmt.Errorf("chart %s: want oci://HOST/PATH[:VERSION|@DIGEST], with a path in lower case", r)
	}
	return nil
}

// Host returns the host, with its port, to which credentials belong.
func (r Reference) Host() string {
	if r.OCI != "" {
		host, _, _ := strings.Cut(r.OCI, "/")
		return host
	}
	if u, err := url.Parse(cmp.Or(r.URL, r.Repo)); err == nil {
		return u.Host
	}
	return ""
}

// String returns the reference as users write it, without credentials.
func (r Reference) String() string {
	switch {
	case r.Path != "":
		return r.Path
	case r.URL != "":
		return redact(r.URL)
	case r.OCI != "":
		text := "oci://" + r.OCI
		if validTag.MatchString(r.Version) {
			text += ":" + r.Version
		} else if r.Version != "" {
			return redact(text) + " " + r.Version
		}
		if r.Digest != "" {
			text += "@" + r.Digest
		}
		return redact(text)
	}
	text := r.Name
	if strings.Contains(r.Repo, "://") {
		text += " of " + redact(r.Repo)
	} else if r.Repo != "" {
		text = r.Repo + "/" + text
	}
	if r.Version != "" {
		text += " " + r.Version
	}
	return text
}

var (
	userinfo = regexp.MustCompile(`://[^/@\s"]*@`)
	query    = regexp.MustCompile(`(://[^?\s"]*)\?[^\s"]*`)
)

// redact removes credentials and queries from the URLs in a text.
func redact(text string) string {
	return query.ReplaceAllString(userinfo.ReplaceAllString(text, "://"), "$1")
}
