package catalog

import (
	"fmt"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/watches"
)

// Source is one object that values come from.
type Source struct {
	watches.ValuesFrom
	// Object is its name for a custom resource.
	Object *Name
}

// sources parses the names of valuesFrom and tries its paths.
func sources(from []watches.ValuesFrom) ([]Source, error) {
	var list []Source
	for i, entry := range from {
		at := fmt.Sprintf("valuesFrom[%d]", i)
		name, err := parseObjectName(at+".name", entry.Name)
		if err != nil {
			return nil, err
		}
		if entry.TargetPath != "" {
			if err := helm.CheckPath(entry.TargetPath); err != nil {
				return nil, fmt.Errorf("%s.targetPath: %w", at, err)
			}
		}
		list = append(list, Source{ValuesFrom: entry, Object: name})
	}
	return list, nil
}
