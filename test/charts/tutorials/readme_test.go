package tutorials

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// schema is the part of a values.schema.json that describes values.
type schema struct {
	Properties map[string]schema
}

// leaves returns the dotted paths of all values below a path.
func (s schema) leaves(path string) []string {
	if len(s.Properties) == 0 || path == "resources" {
		return []string{path}
	}
	var all []string
	for name, property := range s.Properties {
		all = append(all, property.leaves(strings.TrimPrefix(path+"."+name, "."))...)
	}
	slices.Sort(all)
	return all
}

// TestReadmes_ListAllValues: a chart's README lists the values of its schema, and
// its values.yaml mentions each of them.
func TestReadmes_ListAllValues(t *testing.T) {
	for name := range charts {
		read := func(file string) string {
			data, err := os.ReadFile(filepath.Join(chartsDir, name, file))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		var values schema
		if err := json.Unmarshal([]byte(read("values.schema.json")), &values); err != nil {
			t.Fatal(err)
		}
		readme, defaults := read("README.md"), read("values.yaml")
		for _, path := range values.leaves("") {
			if path == "global" {
				continue
			}
			if !strings.Contains(readme, "`"+path+"`") {
				t.Errorf("README.md of %s does not list %s", name, path)
			}
			if key := path[strings.LastIndex(path, ".")+1:]; !strings.Contains(defaults, key+":") {
				t.Errorf("values.yaml of %s does not mention %s", name, path)
			}
		}
	}
}
