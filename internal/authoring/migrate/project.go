package migrate

import (
	"errors"
	"fmt"
	"io/fs"
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
	// problems what is wrong with the file.
	kinds    []catalog.Kind
	problems watches.LineErrors
	// charts tells which folder the charts are in.
	charts string
}

// Options are what the findings depend on beside the project.
type Options struct {
	// Flags tells whether the command "chartwright run" has a flag.
	Flags func(name string) bool
	// Live: the cluster is looked at, too, which tells more of what charts need
	// to be allowed.
	Live bool
}

// ErrNoProject marks a folder that is no operator-sdk Helm project.
var ErrNoProject = errors.New("this is no project of the operator-sdk's Helm operator")

// Read takes in a project. Expand is told the variables of the manager's
// container before overrideValues are expanded; nil is told nothing.
func Read(dir string, expand func(map[string]string) error) (*Project, error) {
	p := &Project{dir: dir, files: map[string]string{}}
	for _, name := range []string{projectFile, watchesFile, dockerfile, makefile} {
		if err := p.take(name); err != nil {
			return nil, err
		}
	}
	if err := p.takeConfig(); err != nil {
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
	if err := p.readKinds(); err != nil {
		return nil, err
	}
	return p, nil
}

// take reads a file, if it is there.
func (p *Project) take(name string) error {
	data, err := os.ReadFile(filepath.Join(p.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.files[name] = string(data)
	return nil
}

func (p *Project) takeConfig() error {
	root := filepath.Join(p.dir, "config")
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)) {
			return err
		}
		name, err := filepath.Rel(p.dir, file)
		if err != nil {
			return err
		}
		return p.take(filepath.ToSlash(name))
	})
}

// readKinds loads what the watches file names. What is wrong with it is found
// and told with the rest.
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

// under returns the paths of a folder's files, in their order.
func (p *Project) under(folder string) []string {
	var found []string
	for name := range p.files {
		if strings.HasPrefix(name, folder+"/") {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// topicOf is the topic of findings about a kind.
func topicOf(kind catalog.Kind) string { return kind.GVK().GroupKind().String() }

// Findings tells what the files say, unsorted.
func (p *Project) Findings(o Options) ([]Finding, error) {
	findings := slices.Concat(p.layoutFindings(), p.watchesFindings(), p.containerFindings(), p.makefileFindings(), p.managerFindings(o), p.monitorFindings(), p.roleFindings())
	for _, kind := range p.kinds {
		looks := []func(catalog.Kind) ([]Finding, error){p.entryFindings, p.definitionFindings, p.chartFindings, p.sampleFindings}
		if !o.Live {
			looks = append(looks, func(kind catalog.Kind) ([]Finding, error) { return p.allowFindings(kind, nil) })
		}
		for _, look := range looks {
			found, err := look(kind)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind.Kind, err)
			}
			findings = append(findings, found...)
		}
	}
	findings = append(findings, p.cutoverFindings()...)
	return append(findings, p.behaviorFindings()...), nil
}

// topicBehavior is the topic of what differs for everybody.
const topicBehavior = "behavior"

// Behavior is something that this operator does otherwise.
type Behavior struct {
	// What is a word or two, Was what the operator-sdk does, Is what happens
	// here, and Do what to do about it, if anything.
	What, Was, Is, Do string
}

// Behaviors returns what differs for everybody, in the order in which it is
// told.
func Behaviors() []Behavior { return slices.Clone(behaviors) }

var behaviors = []Behavior{
	{
		What: "Schema",
		Was:  "the CRD takes any spec, and a wrong one fails in Helm",
		Is:   "the CRD is made of the chart, and the API server refuses what it does not take",
		Do:   "`chartwright migrate --live` finds resources that it would refuse or cut",
	},
	{
		What: "Upgrades",
		Was:  "the chart is rendered with every reconcile, and an upgrade made where the text differs, so that a random value makes a revision each minute",
		Is:   "an upgrade is made where spec, chart or overrideValues differ; nothing is rendered to find that out",
	},
	{
		What: "Drift",
		Was:  "objects are compared each `reconcilePeriod`, one minute; what somebody removed from a list of a custom resource, or from another namespace, is seen late or never",
		Is:   "a change of a field that the chart sets is undone as it happens; fields that others add stay",
		Do:   "`drift.ignore`, or `drift.mode: Warn`, where somebody changes objects on purpose",
	},
	{
		What: "Server-side apply",
		Was:  "objects are patched from the client",
		Is:   "objects are applied by the server, field manager `chartwright`; list items that have one key twice are made one, fields that the kind has not are dropped, each with an event",
		Do:   "`chartwright migrate --live` finds them by dry run",
	},
	{
		What: "History",
		Was:  "one revision is kept",
		Is:   "the last 10 that were deployed are kept, to roll back to (`maxHistory`)",
	},
	{
		What: "Failed install",
		Was:  "it is uninstalled at once, and installed again",
		Is:   "it is tried again where it stands, ever more slowly",
	},
	{
		What: "Failed upgrade",
		Was:  "it is rolled back at once, and tried again for ever",
		Is:   "it is tried again, ever more slowly",
		Do:   "`onFailure: Rollback` in the entry rolls it back after `retries`, and holds it there until the spec is edited",
	},
	{
		What: "Release names",
		Was:  "that of the resource, up to 53 characters; longer ones fail",
		Is:   "that of the resource, with dashes for dots, and cut with a hash where it is longer; where another resource's release has it, `<name>-<kind>`",
	},
	{
		What: "Hooks",
		Was:  "a hook that hangs holds a worker for ever",
		Is:   "each has `timeout`, 5 minutes",
		Do:   "set `timeout` in the entry where a hook takes longer",
	},
	{
		What: "Beyond the namespace",
		Was:  "a chart may make objects in any namespace, cluster-scoped ones, and look up all",
		Is:   "what the entry's `allow` names",
		Do:   "write the block that is shown for the kind",
	},
	{
		What: "Finalizer",
		Was:  "`helm.sdk.operatorframework.io/uninstall-release`, put on after the install",
		Is:   "`chartwright.dev/uninstall`, put on before it",
	},
	{
		What: "Conditions",
		Was:  "`Initialized`, `Deployed`, `ReleaseFailed`, `Irreconcilable`; `Deployed` once Helm is through",
		Is:   "`Ready` once the objects do their work, `Reconciling`, `Stalled`, and `Deployed`; the others on resources that carry them already",
		Do:   "wait for `Ready` rather than `Deployed`",
	},
	{
		What: "Status",
		Was:  "`deployedRelease.manifest` holds all that was rendered, Secrets too",
		Is:   "`deployedRelease.name` stays, the manifest goes",
		Do:   "`helm get manifest` shows it",
	},
	{
		What: "Metrics",
		Was:  "`helm_operator_build_info`, `resource_created_at_seconds`",
		Is:   "`chartwright_build_info`, `chartwright_releases` and more, by kind",
		Do:   "look through dashboards and alerts",
	},
	{
		What: "Rights",
		Was:  "`*` on what the chart makes, and on Secrets",
		Is:   "the verbs that are used; what is missing is told by `/readyz` and on each resource",
		Do:   "`chartwright rbac` derives the role",
	},
}

// behaviorFindings tells what differs for everybody.
func (*Project) behaviorFindings() []Finding {
	f := finder{topic: topicBehavior}
	for _, b := range behaviors {
		f.addf(Changes, "", "%s: %s; until now: %s", b.What, b.Is, b.Was).Do = b.Do
	}
	return f.findings
}
