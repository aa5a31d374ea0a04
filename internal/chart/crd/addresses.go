package crd

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// addresses knows the schemas of a document that have a name of their own: by
// $id, which also changes what relative references within are relative to, by
// $anchor and, in older drafts, by an $id that is only a fragment.
type addresses struct {
	// id is the keyword: "id" in draft 4, "$id" in all others.
	id string
	// siblings tells that keywords beside a $ref count.
	siblings bool
	// resources and anchors hold JSON pointers by absolute addresses.
	resources, anchors map[string]string
	refs               []reference
}

// reference is a schema with a $ref that has to be looked up.
type reference struct {
	schema node
	base   *url.URL
}

// home is the address of a document that gives itself none.
var home = &url.URL{Scheme: "file", Path: "/values.schema.json"}

// settle rewrites the references of a document, in place, that are not JSON
// pointers from its root already. One that leads elsewhere stays as it is.
func settle(root any, id string, siblings bool) {
	a := &addresses{id: id, siblings: siblings, resources: map[string]string{home.String(): ""}, anchors: map[string]string{}}
	a.schema(root, "", home)
	for _, r := range a.refs {
		ref, _ := r.schema["$ref"].(string)
		if pointer, found := a.pointer(ref, r.base); found {
			r.schema["$ref"] = (&url.URL{Fragment: pointer}).String()
			if pointer == "" {
				r.schema["$ref"] = "#"
			}
		}
	}
}

// pointer returns the JSON pointer of what a reference leads to.
func (a *addresses) pointer(ref string, base *url.URL) (pointer string, found bool) {
	target, err := base.Parse(ref)
	if err != nil {
		return "", false
	}
	fragment := target.Fragment
	target.Fragment, target.RawFragment = "", ""
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		pointer, found = a.anchors[target.String()+"#"+fragment]
		return pointer, found
	}
	pointer, found = a.resources[target.String()]
	return pointer + fragment, found
}

// schema gathers the names in a schema, or in a list of them.
func (a *addresses) schema(value any, pointer string, base *url.URL) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			a.schema(item, pointer+"/"+strconv.Itoa(i), base)
		}
	case node:
		base = a.name(v, pointer, base)
		if ref, ok := v["$ref"].(string); ok && (base.String() != home.String() || !strings.HasPrefix(ref, "#/")) {
			a.refs = append(a.refs, reference{v, base})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := pointer + "/" + escape(key)
			inner, isMap := v[key].(node)
			switch {
			case slices.Contains(holdsValues, key):
			case isMap && slices.Contains(holdsSchemas, key):
				for _, name := range slices.Sorted(maps.Keys(inner)) {
					a.schema(inner[name], at+"/"+escape(name), base)
				}
			default:
				a.schema(v[key], at, base)
			}
		}
	}
}

// name notes the names of one schema, and returns what is relative to it.
func (a *addresses) name(n node, pointer string, base *url.URL) *url.URL {
	if _, isRef := n["$ref"]; isRef && !a.siblings {
		return base
	}
	if id, ok := n[a.id].(string); ok {
		if name, isAnchor := strings.CutPrefix(id, "#"); isAnchor {
			a.anchors[base.String()+"#"+name] = pointer
		} else if next, err := base.Parse(id); err == nil {
			next.Fragment, next.RawFragment = "", ""
			base = next
			a.resources[base.String()] = pointer
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := n[key].(string); ok {
			a.anchors[base.String()+"#"+name] = pointer
		}
	}
	return base
}

var (
	// holdsValues are the keywords whose values are no schemas.
	holdsValues = []string{"enum", "const", "default", "examples", "example"}
	// holdsSchemas are those whose values are maps of schemas.
	holdsSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// escape writes a key as a part of a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
