package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/watches"
)

// fetchFlags are the flags of commands that fetch charts, by the names that Helm uses.
type fetchFlags struct {
	repo, version                  string
	username, password             string
	passwordStdin, passCredentials bool
	caFile, certFile, keyFile      string
	insecure, plainHTTP, verify    bool
	keyring                        string
}

// add adds the flags. Commands with many other flags do not list those that describe the
// connection in their help, and refer to the help of update.
func (f *fetchFlags) add(cmd *cobra.Command, listConnection bool) {
	flags := cmd.Flags()
	flags.StringVar(&f.version, "chart-version", "", "version of the chart, or a constraint such as ^1.2 (default: newest stable)")
	connection := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	connection.StringVar(&f.username, "username", "", "user name for the server (default: as stored by Helm or Docker)")
	connection.StringVar(&f.password, "password", "", "password for the server; prefer --password-stdin (default: as stored by Helm or Docker)")
	connection.BoolVar(&f.passwordStdin, "password-stdin", false, "read the password from standard input")
	connection.BoolVar(&f.passCredentials, "pass-credentials", false, "also send the credentials to other hosts that a repository names")
	connection.StringVar(&f.caFile, "ca-file", "", "file with the CA certificates of the server (default: those of the system)")
	connection.StringVar(&f.certFile, "cert-file", "", "file with a client certificate (default: none)")
	connection.StringVar(&f.keyFile, "key-file", "", "file with the key of the client certificate (default: none)")
	connection.BoolVar(&f.insecure, "insecure-skip-tls-verify", false, "accept any certificate of the server")
	connection.BoolVar(&f.plainHTTP, "plain-http", false, "use HTTP for an OCI registry, and send credentials over HTTP")
	connection.BoolVar(&f.verify, "verify", false, "require a valid signature of the chart by a key in --keyring")
	connection.StringVar(&f.keyring, "keyring", "", "file with public keys (default: pubring.gpg of GnuPG)")
	connection.VisitAll(func(flag *pflag.Flag) {
		flag.Hidden = !listConnection
		flags.AddFlag(flag)
	})
}

func (f *fetchFlags) addRepo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.repo, "repo", "", "URL of the chart repository (default: none)")
}

// options returns how to fetch a chart.
func (f *fetchFlags) options(cmd *cobra.Command) (source.Options, error) {
	o := source.Options{
		Username: f.username, Password: f.password, PassCredentials: f.passCredentials,
		InsecureSkipTLSVerify: f.insecure, PlainHTTP: f.plainHTTP, Helm: source.UserHelm(),
	}
	if f.passwordStdin {
		if f.password != "" {
			return o, errors.New("--password and --password-stdin cannot be combined")
		}
		text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<16))
		if err != nil {
			return o, fmt.Errorf("--password-stdin: %w", err)
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
	}
	for _, file := range []struct {
		flag, name string
		into       *[]byte
	}{{"ca-file", f.caFile, &o.CA}, {"cert-file", f.certFile, &o.Cert}, {"key-file", f.keyFile, &o.Key}} {
		if file.name == "" {
			continue
		}
		var err error
		if *file.into, err = os.ReadFile(file.name); err != nil {
			return o, fmt.Errorf("--%s: %w", file.flag, err)
		}
	}
	switch {
	case f.verify:
		o.Keyring = cmp.Or(f.keyring, filepath.Join(cmp.Or(os.Getenv("GNUPGHOME"), filepath.Join(os.Getenv("HOME"), ".gnupg")), "pubring.gpg"))
	case f.keyring != "":
		return o, errors.New("--keyring requires --verify")
	}
	return o, nil
}

// resolve sets the chart of a request from the text of a user. It fetches charts that are
// not on this machine.
func (f *fetchFlags) resolve(cmd *cobra.Command, text string, add *scaffold.Add) error {
	downloaded, remote, err := f.fetch(cmd, text)
	if err != nil {
		return err
	}
	if !remote {
		add.Chart = text
		return nil
	}
	fetched := fetchedOf(downloaded)
	if fetched.Chart != downloaded.Reference.URL && downloaded.Reference.URL != "" || fetched.Repo != downloaded.Reference.Repo {
		cmd.PrintErrln("Note: the URL is recorded without its query, which may be a secret. If the server requires the query, 'chartwright update' cannot fetch the chart")
	}
	add.Fetched = &fetched
	return nil
}

// fetch fetches the chart of a user's text if it is remote. Of a chart on this machine, it
// checks the version and the signature if flags request it, or returns why there is no such
// chart.
func (f *fetchFlags) fetch(cmd *cobra.Command, text string) (fetched source.Chart, remote bool, err error) {
	reference, err := source.Parse(text, f.repo, f.version)
	if err != nil {
		return fetched, false, err
	}
	o, err := f.options(cmd)
	if err != nil {
		return fetched, false, err
	}
	if _, err := os.Stat(text); err == nil && !reference.Remote() && f.version == "" && !f.verify {
		return fetched, false, nil
	}
	fetched, err = source.Fetch(cmd.Context(), reference, o)
	return fetched, reference.Remote(), err
}

// load returns the chart of a user's text. It fetches charts that are not on this machine.
func (f *fetchFlags) load(cmd *cobra.Command, text string) (*chart.Chart, error) {
	fetched, remote, err := f.fetch(cmd, text)
	if err != nil {
		return nil, err
	}
	if remote {
		return chart.LoadArchive(bytes.NewReader(fetched.Archive))
	}
	loaded, err := catalog.OpenChart(text)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", text, err)
	}
	return loaded, nil
}

// fetchedOf returns a fetched chart with the source for watches.yaml. The source contains no
// queries of URLs, because signed URLs have their secret there.
func fetchedOf(chart source.Chart) scaffold.Fetched {
	r := chart.Reference
	f := scaffold.Fetched{Archive: chart.Archive, Source: watches.Source{Chart: r.Name, Repo: withoutQuery(r.Repo), Version: chart.Version, Digest: chart.Pinned()}}
	switch {
	case r.OCI != "":
		f.Chart = "oci://" + r.OCI
	case r.URL != "":
		f.Chart = withoutQuery(r.URL)
	}
	return f
}

func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}
