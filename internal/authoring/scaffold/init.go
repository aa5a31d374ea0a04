package scaffold

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Init is a project to be made.
type Init struct {
	Dir string
	// Name is the operator's; empty means that of the folder.
	Name string
	// Domain is what groups without a dot belong to; it may be empty.
	Domain string
	// Image is Chartwright's own, that the project's image is made from.
	Image string
}

// maxName leaves room for what is added to the name, the longest of which is
// "-controller-manager" with what a ReplicaSet and a Pod add.
const maxName = 63 - len("-controller-manager") - len("-0123456789-01234")

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Plan returns the files of the project. A file that is there is never written
// over: it is an error, which names all of them. Others in the folder stay.
func (i Init) Plan() (*Plan, error) {
	if i.Name == "" {
		dir, err := filepath.Abs(i.Dir)
		if err != nil {
			return nil, err
		}
		i.Name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	}
	if problems := validation.IsDNS1035Label(i.Name); len(problems) > 0 || len(i.Name) > maxName {
		return nil, fmt.Errorf("the name of the project %q: expected at most %d lower case letters, digits and dashes, and a letter first: choose one by --name", i.Name, maxName)
	}
	if i.Domain != "" {
		if problems := validation.IsDNS1123Subdomain(i.Domain); len(problems) > 0 {
			return nil, fmt.Errorf("--domain %q: %s", i.Domain, strings.Join(problems, "; "))
		}
	}
	plan := newPlan()
	if err := plan.writeTemplates("files/project", i.Dir, i); err != nil {
		return nil, err
	}
	// The rest follows from watches.yaml, although that names no kind yet.
	project := Project{Watches: filepath.Join(i.Dir, "watches.yaml"), Config: filepath.Join(i.Dir, "config")}
	if err := project.generate(plan, i.Name, nil); err != nil {
		return nil, err
	}
	var taken []string
	for _, file := range plan.Files() {
		if file.Op != OpCreate {
			taken = append(taken, file.Path)
		}
	}
	if len(taken) > 0 {
		return nil, fmt.Errorf("%s has files already that init would write: %s: choose another folder, or move them away",
			filepath.Clean(i.Dir), strings.Join(taken, ", "))
	}
	return plan, nil
}
