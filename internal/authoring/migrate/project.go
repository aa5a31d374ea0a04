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

// Project is what the files of a project hold.
type Project struct {
	dir string
	// files are texts by their paths, which are relative to the folder and have
	// slashes: those of the root, and the manifests of config/.
	files  map[string]string
	layout layout
	// kinds are those of the watches file whose charts could be loaded, and
	// problems those of the file.
	kinds    []catalog.Kind
	problems watches.LineErrors
	// charts is the folder of the charts.
	charts string
}

// Options are what the findings depend on beside the project.
type Options struct {
	// Flags reports whether the command "chartwright run" has a flag.
	Flags func(name string) bool
	// Live: LiveFindings follow, which know better what charts have to be allowed.
	Live bool
}

// ErrNoProject marks a folder that is no operator-sdk Helm project.
var ErrNoProject = errors.New("this is no project of the operator-sdk's Helm operator")

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
	return p, p.readKinds()
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

// readKinds loads the kinds of the watches file. Problems of the file become
// findings.
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

// under returns the paths of the files in folders, sorted in each folder.
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

// topicOf is the topic of findings about a kind.
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
		f.addf(Changes, "", "%s: %s; until now: %s", b.what, b.is, b.was).Do = b.do
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
	// what is a word or two, was the behavior of the operator-sdk, is that of
	// Chartwright, and do what to do about it, if anything.
	what, was, is, do string
}

var behaviors = []behavior{
	{
		what: "Schema",
		was:  "the CRD takes any spec, and a wrong one fails in Helm",
		is:   "the CRD is made of the chart, and the API server refuses what it does not take",
		do:   "`chartwright migrate --live` finds resources that it would refuse or cut",
	},
	{
		what: "Upgrades",
		was:  "the chart is rendered with every reconcile, and an upgrade made where the text differs, so that a random value makes a revision each minute",
		is:   "an upgrade is made where spec, chart or overrideValues differ; nothing is rendered to find that out",
	},
	{
		what: "Drift",
		was:  "objects are compared each `reconcilePeriod`, one minute; what somebody removed from a list of a custom resource, or from another namespace, is seen late or never",
		is:   "a change of a field that the chart sets is undone as it happens; fields that others add stay",
		do:   "`drift.ignore`, or `drift.mode: Warn`, where somebody changes objects on purpose",
	},
	{
		what: "Server-side apply",
		was:  "objects are patched from the client",
		is:   "objects are applied by the server, field manager `chartwright`; list items that have one key twice are made one, fields that the kind has not are dropped, each with an event",
		do:   "`chartwright migrate --live` finds them by dry run",
	},
	{
		what: "History",
		was:  "one revision is kept",
		is:   "the last 10 that were deployed are kept, to roll back to (`maxHistory`)",
	},
	{
		what: "Failed install",
		was:  "it is uninstalled at once, and installed again",
		is:   "it is tried again where it stands, ever more slowly",
	},
	{
		what: "Failed upgrade",
		was:  "it is rolled back at once, and tried again for ever",
		is:   "it is tried again, ever more slowly",
		do:   "`onFailure: Rollback` in the entry rolls it back after `retries`, and holds it there until the spec is edited",
	},
	{
		what: "Release names",
		was:  "that of the resource, up to 53 characters; longer ones fail",
		is:   "that of the resource, with dashes for dots, and cut with a hash where it is longer; where another resource's release has it, `<name>-<kind>`",
	},
	{
		what: "Hooks",
		was:  "a hook that hangs holds a worker for ever",
		is:   "each has `timeout`, 5 minutes",
		do:   "set `timeout` in the entry where a hook takes longer",
	},
	{
		what: "Beyond the namespace",
		was:  "a chart may make objects in any namespace, cluster-scoped ones, and look up all",
		is:   "what the entry's `allow` names",
		do:   "write the block that is shown for the kind",
	},
	{
		what: "Finalizer",
		was:  "`helm.sdk.operatorframework.io/uninstall-release`, put on after the install",
		is:   "`chartwright.dev/uninstall`, put on before it",
	},
	{
		what: "Conditions",
		was:  "`Initialized`, `Deployed`, `ReleaseFailed`, `Irreconcilable`; `Deployed` once Helm is through",
		is:   "`Ready` once the objects do their work, `Reconciling`, `Stalled`, and `Deployed`; the others on resources that carry them already",
		do:   "wait for `Ready` rather than `Deployed`",
	},
	{
		what: "Status",
		was:  "`deployedRelease.manifest` holds all that was rendered, Secrets too",
		is:   "`deployedRelease.name` stays, the manifest goes",
		do:   "`helm get manifest` shows it",
	},
	{
		what: "Metrics",
		was:  "`helm_operator_build_info`, `resource_created_at_seconds`",
		is:   "`chartwright_build_info`, `chartwright_releases` and more, by kind",
		do:   "look through dashboards and alerts",
	},
	{
		what: "Rights",
		was:  "`*` on what the chart makes, and on Secrets",
		is:   "the verbs that are used; what is missing is told by `/readyz` and on each resource",
		do:   "`chartwright rbac` derives the role",
	},
}
