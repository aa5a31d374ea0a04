package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxChart is what Helm takes for the name of a release, which charts name
// objects by.
const maxChart = 53

// starter is a new chart, to start from.
func (p Project) starter(name string) (source, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > maxChart {
		return source{}, fmt.Errorf("--new %q: expected at most %d lower case letters, digits and dashes", name, maxChart)
	}
	s := source{name: name, folder: filepath.Join(p.charts(), name), entry: "charts/" + name}
	if _, err := os.Stat(s.folder); err == nil {
		return s, fmt.Errorf("--new %s: %s is there already: to make a kind of it, or to bring its kind up to date, run 'chartwright add %[2]s'", name, s.folder)
	}
	plan := newPlan()
	if err := plan.writeTemplates("files/chart", s.folder, map[string]string{"Name": name}); err != nil {
		return s, err
	}
	s.files = map[string][]byte{}
	for path, file := range plan.files {
		inner, err := filepath.Rel(s.folder, path)
		if err != nil {
			return s, err
		}
		s.files[strings.ReplaceAll(inner, string(filepath.Separator), "/")] = file.after
	}
	return s, nil
}
