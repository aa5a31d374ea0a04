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
		was:  "the CRD accepts any spec; errors appear during the Helm action",
		is:   "the CRD is derived from the chart, and the API server rejects specs that do not conform to it",
		do:   "`chartwright migrate --live` finds custom resources with fields that the API server would reject or drop",
	},
	{
		what: "Upgrades",
		was:  "the chart is rendered in every reconciliation, and upgraded if the output differs; a random value creates a revision every minute",
		is:   "an upgrade runs if spec, chart or overrideValues differ; detecting that needs no render",
	},
	{
		what: "Drift",
		was:  "objects are compared every `reconcilePeriod`, one minute by default; changes in lists of custom resources and in other namespaces are detected late or never",
		is:   "a change of a field that the chart sets is corrected at once; fields that others add remain",
		do:   "`drift.ignore`, or `drift.mode: Warn`, for objects that users change on purpose",
	},
	{
		what: "Server-side apply",
		was:  "objects are patched by the client",
		is:   "objects are applied by the API server, field manager `chartwright`; duplicate list items are merged and unknown fields are dropped, each with an event",
		do:   "`chartwright migrate --live` finds them by dry run",
	},
	{
		what: "History",
		was:  "one revision is kept",
		is:   "the last 10 deployed revisions are kept for rollbacks (`maxHistory`)",
	},
	{
		what: "Failed install",
		was:  "it is uninstalled at once and installed again",
		is:   "it is retried in place, with backoff",
	},
	{
		what: "Failed upgrade",
		was:  "it is rolled back at once and retried without limit",
		is:   "it is retried with backoff",
		do:   "`onFailure: Rollback` in the entry rolls back after `retries`, and holds the release until the spec is edited",
	},
	{
		what: "Release names",
		was:  "the name of the custom resource, up to 53 characters; longer names fail",
		is:   "the name of the custom resource, with dots replaced by dashes, and shortened with a hash if it is too long; `<name>-<kind>` if the release of another custom resource has that name",
	},
	{
		what: "Hooks",
		was:  "a hook that hangs blocks a worker without limit",
		is:   "each hook has the `timeout`, 5 minutes by default",
		do:   "set `timeout` in the entry if a hook takes longer",
	},
	{
		what: "Access beyond the namespace",
		was:  "a chart may create objects in any namespace and cluster-scoped objects, and look up all objects",
		is:   "only the access that the entry's `allow` block lists",
		do:   "add the `allow` block that the report prints for the kind",
	},
	{
		what: "Finalizer",
		was:  "`helm.sdk.operatorframework.io/uninstall-release`, added after the install",
		is:   "`chartwright.dev/uninstall`, added before the install",
	},
	{
		what: "Conditions",
		was:  "`Initialized`, `Deployed`, `ReleaseFailed`, `Irreconcilable`; `Deployed` is set when Helm has finished",
		is:   "`Ready` when all objects are ready, `Reconciling`, `Stalled`, and `Deployed`; the other conditions only on custom resources that already have them",
		do:   "wait for `Ready` instead of `Deployed`",
	},
	{
		what: "Status",
		was:  "`deployedRelease.manifest` contains all rendered objects, including Secrets",
		is:   "`deployedRelease.name` remains, `deployedRelease.manifest` is removed",
		do:   "use `helm get manifest`",
	},
	{
		what: "Metrics",
		was:  "`helm_operator_build_info`, `resource_created_at_seconds`",
		is:   "`chartwright_build_info`, `chartwright_releases` and more, by kind",
		do:   "check dashboards and alerts",
	},
	{
		what: "Permissions",
		was:  "`*` on the objects of the chart and on Secrets",
		is:   "only the verbs that are used; `/readyz` and each custom resource report missing permissions",
		do:   "`chartwright rbac` derives the role",
	},
}
