package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// Names of files in a project.
const (
	projectFile = "PROJECT"
	watchesFile = "watches.yaml"
	dockerfile  = "Dockerfile"
	makefile    = "Makefile"
)

// Project is the content of the files of a project.
type Project struct {
	dir string
	// files maps paths, relative to the folder and with slashes, to contents. It has
	// the files in the root that are known, and the manifests of config/.
	files  map[string]string
	layout layout
	// kinds are the kinds of the watches file whose charts could be loaded, and
	// problems the errors in the file.
	kinds    []catalog.Kind
	problems watches.LineErrors
	// charts is the folder of the charts.
	charts string
}

// Options are inputs of the findings other than the project.
type Options struct {
	// Flags reports whether the command "chartwright run" has a flag.
	Flags func(name string) bool
	// Live is set if LiveFindings follow. They include the allow block, for the values
	// of all custom resources.
	Live bool
}

// ErrNoProject means that a folder is not an operator-sdk Helm project.
var ErrNoProject = errors.New("not a project of the operator-sdk's Helm operator")

// Read reads a project. If expand is not nil, it gets the environment variables
// of the manager's container before overrideValues are expanded.
func Read(dir string, expand func(map[string]string) error) (*Project, error) {
	p := &Project{dir: dir, files: map[string]string{}}
	if err := p.readFiles(); err != nil {
		return nil, err
	}
	if err := p.readLayout(); err != nil {
		return nil, err
	}
	if expand != nil {
		if err := expand(p.environment()); err != nil {
			return nil, err
		}
	}
	err := p.readKinds()
	return p, err
}

// readFiles reads the files that exist.
func (p *Project) readFiles() error {
	read := func(name string) error {
		data, err := os.ReadFile(filepath.Join(p.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		p.files[name] = string(data)
		return err
	}
	for _, name := range []string{projectFile, watchesFile, dockerfile, makefile} {
		if err := read(name); err != nil {
			return err
		}
	}
	return fs.WalkDir(os.DirFS(p.dir), "config", func(name string, entry fs.DirEntry, err error) error {
		switch extension := path.Ext(name); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil, entry.IsDir(), extension != ".yaml" && extension != ".yml":
			return err
		}
		return read(name)
	})
}

// readKinds loads the kinds of the watches file. Errors in the file become findings.
func (p *Project) readKinds() error {
	if _, exists := p.files[watchesFile]; !exists {
		return fmt.Errorf("%w: %s has no %s", ErrNoProject, p.dir, watchesFile)
	}
	kinds, err := catalog.FromFile(filepath.Join(p.dir, watchesFile))
	if err != nil && !errors.As(err, &p.problems) {
		return err
	}
	for i := range p.problems {
		p.problems[i].File = watchesFile
	}
	for _, kind := range kinds {
		folder, _, _ := strings.Cut(path.Clean(filepath.ToSlash(kind.Watch.Chart)), "/")
		if p.charts == "" && folder != ".." && folder != "." && folder != "" {
			p.charts = folder
		}
		known := slices.ContainsFunc(p.kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == kind.GVK().GroupKind() })
		if kind.Chart != nil && kind.Kind != "" && kind.Version != "" && !known {
			p.kinds = append(p.kinds, kind)
		}
	}
	return nil
}

// under returns the paths of the files in folders, sorted by folder and path.
func (p *Project) under(folders ...string) []string {
	var found []string
	names := slices.Sorted(maps.Keys(p.files))
	for _, folder := range folders {
		for _, name := range names {
			if strings.HasPrefix(name, folder+"/") {
				found = append(found, name)
			}
		}
	}
	return found
}

// topicOf returns the topic of findings about a kind.
func topicOf(kind catalog.Kind) string { return kind.GVK().GroupKind().String() }

// Findings returns the findings about the files, unsorted.
func (p *Project) Findings(o Options) ([]Finding, error) {
	f := &finder{topic: topicProject}
	p.layoutFindings(f)
	p.watchesFindings(f)
	p.containerFindings(f)
	p.makefileFindings(f)
	f.topic = topicOperator
	p.managerFindings(f, o)
	p.monitorFindings(f)
	p.roleFindings(f)
	p.cutoverFindings(f)
	f.topic = topicBehavior
	for _, b := range behaviors {
		f.addf(Changes, "", "%s: %s. Until now: %s", b.what, b.is, b.was).Do = b.do
	}
	checks := []func(*finder, catalog.Kind) error{p.entryFindings, p.definitionFindings, p.chartFindings, p.sampleFindings}
	if !o.Live {
		checks = append(checks, func(f *finder, kind catalog.Kind) error { return p.allowFindings(f, kind, nil) })
	}
	for _, kind := range p.kinds {
		f.topic = topicOf(kind)
		for _, check := range checks {
			if err := check(f, kind); err != nil {
				return nil, fmt.Errorf("%s: %w", kind.Kind, err)
			}
		}
	}
	return f.findings, nil
}

// behavior is a difference between the operators that affects every project.
type behavior struct {
	// what is the subject. was describes the operator-sdk, is describes Chartwright,
	// and do is what users can do about the difference, if anything.
	what, was, is, do string
}

var behaviors = []behavior{
	{
		what: "Schema",
		was:  "the CRD accepts any spec",
		is:   "the CRD is derived from the chart; the API server rejects invalid specs",
		do:   "`migrate --live` finds invalid specs",
	},
	{
		what: "Upgrades",
		was:  "when a new render differs; a random value creates a revision every minute",
		is:   "when the values or the chart change",
	},
	{
		what: "Drift",
		was:  "corrected after a change and every `reconcilePeriod`",
		is:   "corrected at once; fields added by other clients remain",
		do:   "set `drift.ignore` or `drift.mode: Warn` for intended changes",
	},
	{
		what: "Apply",
		was:  "client-side patch",
		is:   "server-side apply, field manager `chartwright`; unknown fields are dropped, with an event",
		do:   "`migrate --live` finds unknown fields",
	},
	{
		what: "History",
		was:  "one revision",
		is:   "10 deployed revisions (`maxHistory`)",
	},
	{
		what: "Failed install",
		was:  "uninstalled and installed again",
		is:   "retried in place, with backoff",
	},
	{
		what: "Failed upgrade",
		was:  "rolled back and retried without limit",
		is:   "retried with backoff",
		do:   "`onFailure: Rollback` rolls back and holds the release",
	},
	{
		what: "Release name",
		was:  "the name of the custom resource",
		is:   "the same; shortened with a hash if too long, `<name>-<kind>` if taken",
	},
	{
		what: "Hooks",
		was:  "no timeout",
		is:   "`timeout`, 5 minutes by default",
		do:   "raise `timeout` for slow hooks",
	},
	{
		what: "Access beyond the namespace",
		was:  "unlimited",
		is:   "only what the `allow` block of the entry lists",
		do:   "add the block from the report",
	},
	{
		what: "Conditions",
		was:  "`Deployed` when Helm has finished",
		is:   "`Ready` when all objects are ready",
		do:   "wait for `Ready`",
	},
	{
		what: "Status",
		was:  "`deployedRelease.manifest` contains all objects, including Secrets",
		is:   "no manifest",
		do:   "use `helm get manifest`",
	},
	{
		what: "Metrics",
		was:  "`helm_operator_build_info`, `resource_created_at_seconds`",
		is:   "names begin with `chartwright_`",
		do:   "update dashboards and alerts",
	},
	{
		what: "Permissions",
		was:  "`*` on Secrets and the chart's objects",
		is:   "only the required verbs",
		do:   "`chartwright rbac` generates the role",
	},
}
