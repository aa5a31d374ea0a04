package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// Project locates the files of an operator project.
type Project struct {
	// Watches is the path of the watches file, and Config the folder of the manifests.
	Watches, Config string
	// Analyzer keeps the results of analyses of charts. It can be nil.
	Analyzer *permissions.Analyzer
	// Finder keeps where the values of charts land. It can be nil.
	Finder *landing.Finder
}

func (p Project) config(path ...string) string {
	return filepath.Join(append([]string{p.Config}, path...)...)
}

// Name returns the name of the project's operator, which is the name prefix in
// config/default.
func (p Project) Name() (string, error) { return p.nameIn(newPlan()) }

func (p Project) nameIn(plan *Plan) (string, error) {
	file := p.config("default", "kustomization.yaml")
	data, err := plan.read(file)
	if err != nil {
		return "", err
	}
	var kustomization struct {
		NamePrefix string `yaml:"namePrefix"`
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return cmp.Or(strings.TrimSuffix(kustomization.NamePrefix, "-"), "chartwright"), nil
}

// read returns the name of the project's operator and its kinds.
func (p Project) read() (name string, kinds []catalog.Kind, err error) {
	if _, err := os.Stat(p.Watches); errors.Is(err, fs.ErrNotExist) {
		return "", nil, p.missing()
	}
	if kinds, err = catalog.FromFile(p.Watches); err != nil {
		return "", nil, err
	}
	if err := crd.FollowExisting(kinds, p.Watches); err != nil {
		return "", nil, err
	}
	name, err = p.Name()
	return name, kinds, err
}

func (p Project) missing() error {
	return fmt.Errorf("%s not found: run the command in the folder of a project (see 'chartwright init'), or set --watches-file", p.Watches)
}

// Init describes a new project.
type Init struct {
	Dir string
	// Name is the name of the operator. The default is the name of the folder.
	Name string
	// Domain completes groups without a dot. It is optional.
	Domain string
	// Version is the version of Chartwright with which CI checks the project. The default
	// is that of this binary.
	Version string
	// Image is the image of Chartwright, on which the project's image is based. The default
	// is the published image of this binary.
	Image string
}

// maxName is the maximum length of a name. The longest suffix is
// "-controller-manager" with the suffixes of a ReplicaSet and a Pod.
const maxName = 63 - len("-controller-manager") - len("-0123456789-01234")

// imageName matches names of images that are valid in a Dockerfile. It excludes
// white space, quotes and variables, not every invalid name.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Plan returns the files of the project. If any of them exists, it returns an error that
// lists all existing ones. Other files in the folder are preserved.
func (i Init) Plan() (*Plan, error) {
	if i.Name == "" {
		dir, err := filepath.Abs(i.Dir)
		if err != nil {
			return nil, err
		}
		i.Name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	}
	if problems := validation.IsDNS1035Label(i.Name); len(problems) > 0 || len(i.Name) > maxName {
		return nil, fmt.Errorf("project name %q: want at most %d lower-case letters, digits and dashes, starting with a letter: set --name", i.Name, maxName)
	}
	if i.Domain != "" {
		if problems := validation.IsDNS1123Subdomain(i.Domain); len(problems) > 0 {
			return nil, fmt.Errorf("--domain %q: %s", i.Domain, strings.Join(problems, "; "))
		}
	}
	if i.Image != "" && !imageName.MatchString(i.Image) {
		return nil, fmt.Errorf("--image %q: want the name of an image, such as registry.example.com/chartwright:v1", i.Image)
	}
	build := api.BuildInfo()
	i.Version, i.Image = cmp.Or(i.Version, build.Release()), cmp.Or(i.Image, build.Image())
	plan := newPlan()
	files, err := templateFiles("files/project", i)
	if err != nil {
		return nil, err
	}
	if err := plan.writeAll(files, i.Dir); err != nil {
		return nil, err
	}
	// The other files are generated from watches.yaml, which has no entries yet.
	if err := i.Project().generate(plan, i.Name, nil); err != nil {
		return nil, err
	}
	var taken []string
	for _, file := range plan.Files() {
		if file.Op != OpCreate {
			taken = append(taken, file.Path)
		}
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("%s already contains files that init would write: %s: choose another folder, or move these files",
			filepath.Clean(i.Dir), some(taken))
	}
	return plan, nil
}

// Project locates the files of the project.
func (i Init) Project() Project {
	return Project{Watches: filepath.Join(i.Dir, "watches.yaml"), Config: filepath.Join(i.Dir, "config")}
}

// Add adds the first kind to the plan of a new project.
func (i Init) Add(plan *Plan, a Add) error {
	project := i.Project()
	if a.Group == "" && i.Domain == "" {
		name, err := project.nameIn(plan)
		if err != nil {
			return err
		}
		a.Group = name + ".example.com"
		plan.notef("the API group is %s, because there is no --domain and no --group: set one of them if you deploy the operator, because the group cannot be changed later", a.Group)
	}
	return project.add(plan, a)
}

// Bundle plans the files of a folder with a bundle for the Operator Lifecycle Manager,
// and bundle.Dockerfile in its parent folder.
func (p Project) Bundle(ctx context.Context, folder string, options bundle.Options) (*Plan, error) {
	name, kinds, err := p.read()
	if err != nil {
		return nil, err
	}
	objects, err := bundle.Build(p.config("manifests"))
	if err != nil {
		return nil, err
	}
	made, err := bundle.Make(ctx, bundle.Input{Options: options, Name: name, Folder: filepath.Base(folder), Kinds: kinds, Objects: objects})
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	for _, note := range made.Notes {
		plan.notef("%s", note)
	}
	manifests := map[string][]byte{}
	for path, data := range made.Files {
		if name, isManifest := strings.CutPrefix(path, "manifests/"); isManifest {
			manifests[name] = data
		} else if err := plan.generated(filepath.Join(folder, filepath.FromSlash(path)), data); err != nil {
			return nil, err
		}
	}
	if err := plan.generated(filepath.Join(filepath.Dir(folder), "bundle.Dockerfile"), made.Dockerfile); err != nil {
		return nil, err
	}
	err = plan.generatedFiles(filepath.Join(folder, "manifests"), crdFile, manifests)
	return plan, err
}
