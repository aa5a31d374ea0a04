package scaffold

import (
	"context"
	"path/filepath"
	"regexp"

	"github.com/chartwright/chartwright/internal/authoring/bundle"
	"github.com/chartwright/chartwright/internal/catalog"
)

// Bundle returns what is to become of the files of a folder that holds a bundle
// for the Operator Lifecycle Manager, and of bundle.Dockerfile beside it.
func (p Project) Bundle(ctx context.Context, folder string, options bundle.Options) (*Plan, error) {
	kinds, err := catalog.FromFile(p.Watches)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
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
	manifests := map[string]bool{}
	for path, data := range made.Files {
		manifests[filepath.Base(path)] = true
		if err := plan.generated(filepath.Join(folder, filepath.FromSlash(path)), data); err != nil {
			return nil, err
		}
	}
	if err := plan.generated(filepath.Join(filepath.Dir(folder), "bundle.Dockerfile"), made.Dockerfile); err != nil {
		return nil, err
	}
	err = plan.expire(filepath.Join(folder, "manifests"), regexp.MustCompile(`\.yaml$`), manifests)
	return plan, err
}
