package scaffold

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/watches"
)

// Remove describes a kind to remove.
type Remove struct {
	// Kind is a kind such as Web, or with its group Web.shop.example.com.
	Kind string
	// Force also removes a sample and a chart that the user has edited.
	Force bool
}

// Find returns the entry of a kind, which is given as Web or Web.shop.example.com.
func (p Project) Find(kind string) (watches.Watch, error) {
	file, index, err := p.entry(kind)
	if err != nil {
		return watches.Watch{}, err
	}
	return file.entries[index], nil
}

// entry returns the watches file, and the index of the entry of a kind.
func (p Project) entry(kind string) (file *watchesFile, index int, err error) {
	if file, err = p.watchesFile(newPlan()); err == nil {
		index, err = file.find(kind)
	}
	return file, index, err
}

// watchesFile parses the planned watches file.
func (p Project) watchesFile(plan *Plan) (*watchesFile, error) {
	text, err := plan.read(p.Watches)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, p.missing()
	}
	return readWatches(p.Watches, text)
}

// find returns the index of the entry of a kind.
func (f *watchesFile) find(kind string) (int, error) {
	wanted := schema.ParseGroupKind(kind)
	found := -1
	names := make([]string, 0, len(f.entries))
	for i, w := range f.entries {
		names = append(names, w.Kind)
		if w.Kind != wanted.Kind || wanted.Group != "" && w.Group != wanted.Group {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("the groups %s and %s have a kind %s: add the group, as in %[3]s.%[1]s", f.entries[found].Group, w.Group, w.Kind)
		}
		found = i
	}
	switch {
	case found >= 0:
		return found, nil
	case len(names) == 0:
		return -1, fmt.Errorf("%s has no kind %s: it has no kinds", f.name, kind)
	}
	return -1, fmt.Errorf("%s has no kind %s: want one of %s", f.name, kind, strings.Join(names, ", "))
}

// Remove plans the removal of a kind: its entry, its generated files, its sample, and the
// copy of its chart. It keeps files that the user has edited, unless Force is set.
func (p Project) Remove(r Remove) (*Plan, error) {
	file, index, err := p.entry(r.Kind)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	resource, err := p.removeSample(plan, name, file, index, r.Force)
	if err != nil {
		return nil, err
	}
	if err := p.removeChart(plan, file, index, r.Force); err != nil {
		return nil, err
	}
	text, err := file.without(index)
	if err != nil {
		return nil, err
	}
	if err := plan.write(p.Watches, text); err != nil {
		return nil, err
	}
	left, err := p.kinds(text, "", nil)
	if err != nil {
		return nil, err
	}
	plan.Resource = resource
	plan.remarkf("the cluster does not change. Before you deploy the operator without the kind, delete the custom resources, so that their releases are uninstalled: kubectl delete %s --all --all-namespaces", resource)
	plan.remarkf("afterwards, delete the CRD: kubectl delete crd %s. Custom resources that still exist then cannot be deleted, because of their finalizer", resource)
	return plan, p.generate(plan, name, left)
}

// removeSample plans the removal of a sample, unless the user has edited it. It returns
// the name of the kind's resource.
func (p Project) removeSample(plan *Plan, name string, file *watchesFile, index int, force bool) (resource string, err error) {
	w := file.entries[index]
	resource = strings.ToLower(w.Kind) + "." + w.Group
	var generated []byte
	// The chart can be broken: then the kind can still be removed.
	if served, err := p.kinds(file.text, "", nil); err == nil {
		kind := only(served, w.GVK().GroupKind())
		resource, generated = crd.Name(kind), p.generatedSample(name, kind)
	}
	path, data, err := p.sampleOf(plan, w.GVK().GroupKind())
	if err == nil && path != "" && (force || bytes.Equal(unixLines(data), unixLines(generated))) {
		err = plan.write(path, nil)
	}
	return resource, err
}

// sampleOf returns the path and the content of the sample of a kind. The path is empty if
// there is none.
func (p Project) sampleOf(plan *Plan, kind schema.GroupKind) (path string, data []byte, err error) {
	folder := p.config("samples")
	names, err := plan.list(folder)
	if err != nil {
		return "", nil, err
	}
	have, err := plan.sampled(folder, names)
	if err != nil || have[kind] == "" {
		return "", nil, err
	}
	path = folder + "/" + have[kind]
	data, err = plan.read(path)
	return path, data, err
}

// generatedSample returns the sample of a kind as add writes it, or nil if it cannot be
// generated.
func (p Project) generatedSample(name string, kind catalog.Kind) []byte {
	derived, err := newPlan().derive([]catalog.Kind{kind}, p)
	if err != nil {
		return nil
	}
	text, err := newPlan().sample(name, derived[0])
	if err != nil {
		return nil
	}
	return text
}

// removeChart plans the removal of the copy of a chart, unless the user has edited the
// copy, or another kind uses it. It never removes a chart outside of the folders of charts.
func (p Project) removeChart(plan *Plan, file *watchesFile, index int, force bool) error {
	entry := path.Clean(filepath.ToSlash(file.entries[index].Chart))
	for i, other := range file.entries {
		if i != index && sameChart(other.Chart, entry) {
			plan.remarkf("%s stays, because it is also the chart of %s", entry, other.Kind)
			return nil
		}
	}
	folder, chart := path.Split(entry)
	if folder = strings.TrimSuffix(folder, "/"); folder != chartsFolder && folder != helmChartsFolder {
		plan.remarkf("%s stays: delete it if it is no longer used", entry)
		return nil
	}
	at := p.file(entry)
	have, err := filesBelow(at)
	if err != nil {
		return err
	}
	if isFolder(at) {
		plan.folders = append(plan.folders, at)
	} else {
		delete(have, "")
	}
	sums, err := plan.readChecksums(p.file(folder))
	if err != nil {
		return err
	}
	if edited := editedFiles(have, sums.of(chart)); len(edited) > 0 && !force {
		plan.notef("%s stays, because it contains files that 'chartwright add' has not written: %s. To delete it, too, set --force", entry, some(edited))
		return nil
	}
	if !isFolder(at) {
		if !force {
			plan.notef("%s stays: to delete it, too, set --force", entry)
			return nil
		}
		return plan.write(at, nil)
	}
	for name := range have {
		if err := plan.write(filepath.Join(at, filepath.FromSlash(name)), nil); err != nil {
			return err
		}
	}
	return plan.writeChecksums(p.file(folder), sums, chart, nil)
}

// editedFiles returns the files that do not have their checksums.
func editedFiles(have map[string][]byte, sums checksums) []string {
	var edited []string
	for name, data := range have {
		if sums[name] != checksum(data) {
			edited = append(edited, name)
		}
	}
	slices.Sort(edited)
	return edited
}

// without returns the file without an entry. Comments between the entries are preserved.
func (f *watchesFile) without(index int) ([]byte, error) {
	node := f.list.Content[index]
	byHand := fmt.Errorf("%s:%d: the layout of the file does not allow an automatic edit: remove the entry of %s by hand, and run 'chartwright generate'", f.name, f.entries[index].Line, f.entries[index].Kind)
	if f.list.Style&yaml.FlowStyle != 0 || node.Kind != yaml.MappingNode {
		return nil, byHand
	}
	from := offset(f.text, f.entries[index].Line, 1)
	to := from
	for range strings.Count(f.textOf(f.entries[index].Kind, f.entries[index].Group), "\n") {
		to = nextLine(f.text, to)
	}
	by := ""
	if len(f.entries) == 1 {
		by = strings.Repeat(" ", f.list.Column-1) + "[]" + newline(f.text)
	}
	text := splice(f.text, from, to, by)
	left, err := watches.Parse(f.name, text)
	if err != nil && len(f.entries) > 1 {
		return nil, byHand
	}
	if len(left) != len(f.entries)-1 {
		return nil, byHand
	}
	for i, w := range slices.Delete(slices.Clone(f.entries), index, index+1) {
		if left[i].GVK() != w.GVK() {
			return nil, byHand
		}
	}
	return text, nil
}
