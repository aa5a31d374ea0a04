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
