package helm

import (
	"fmt"
	"slices"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// place is where an object is in the API, whatever version it is asked for in.
// A place without a name is a list.
type place struct {
	group, resource, namespace, name string
}

// placeOf reads a path of the API. It returns false for what is no object and
// no list of them.
func placeOf(path string) (place, bool) {
	if _, object := where(path); !object {
		return place{}, false
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if slices.ContainsFunc(parts, func(s string) bool { return s == "" || s == "." || s == ".." }) {
		return place{}, false
	}
	var p place
	switch parts[0] {
	case "api":
		parts = parts[2:]
	case "apis":
		p.group, parts = parts[1], parts[3:]
	default:
		return p, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	p.resource = parts[0]
	p.name = strings.Join(parts[1:], "/")
	return p, true
}

// at returns where an item of a list is.
func (p place) at(namespace, name string) place {
	return place{group: p.group, resource: p.resource, namespace: namespace, name: name}
}

// places tells where the objects of a revision are, its hooks among them.
func (b *builder) places(rls *helmrelease.Release) (map[place]bool, error) {
	manifests := append(make([]string, 0, 1+len(rls.Hooks)), rls.Manifest)
	for _, hook := range rls.Hooks {
		manifests = append(manifests, hook.Manifest)
	}
	found := map[place]bool{}
	for _, manifest := range manifests {
		list, err := b.build(strings.NewReader(manifest))
		if err != nil {
			return nil, fmt.Errorf("revision %d: %w", rls.Version, err)
		}
		for _, info := range list {
			resource := info.Mapping.Resource
			found[place{resource.Group, resource.Resource, info.Namespace, info.Name}] = true
		}
	}
	return found, nil
}
