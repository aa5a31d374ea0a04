package references

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
)

// node is one JSON Schema object.
type node = map[string]any

// Siblings reports whether the keywords next to a $ref apply: since draft 2019-09, and in
// schemas without $schema.
func Siblings(root any) bool {
	return !strings.Contains(draftOf(root), "json-schema.org/draft-0")
}

func draftOf(root any) string {
	schema, _ := root.(node)
	draft, _ := schema["$schema"].(string)
	return draft
}

// Settle rewrites the references of a document, in place, to JSON pointers from its root. It
// does not change references to other documents.
func Settle(root any) {
	a := index(root)
	for _, r := range a.refs {
		ref, ok := r.schema["$ref"].(string)
		if pointer, found := a.pointer(ref, r.base); ok && found {
			r.schema["$ref"] = (&url.URL{Fragment: pointer}).String()
			if pointer == "" {
				r.schema["$ref"] = "#"
			}
		}
	}
}

// Open opens the parts of a document, in place, that refer to other documents: they accept
// any value that the keywords next to the reference accept. It returns the references, sorted.
// References to the schemas of JSON Schema itself remain.
func Open(root any) []string {
	a := index(root)
	var opened []string
	for _, r := range a.refs {
		for _, key := range refKeys {
			ref, ok := r.schema[key].(string)
			if !ok || !a.elsewhere(ref, r.base) {
				continue
			}
			opened = append(opened, ref)
			delete(r.schema, key)
			if key == "$ref" && !a.siblings {
				// The other keywords do not apply, but references can point to definitions.
				maps.DeleteFunc(r.schema, func(key string, _ any) bool { return key != "definitions" && key != "$defs" })
			}
		}
	}
	slices.Sort(opened)
	return slices.Compact(opened)
}

// refKeys are the keywords that refer to a schema. $schema refers to that of the document.
var refKeys = []string{"$ref", "$dynamicRef", "$schema"}

// addresses indexes the schemas of a document that have a name: an $id, which is also
// the base of relative references in the schema, an $anchor or, in older drafts, an $id
// that is only a fragment.
type addresses struct {
	// id is the keyword: "id" in draft 4, "$id" in all others.
	id string
	// siblings is true if keywords next to a $ref apply.
	siblings bool
	// resources and anchors map absolute addresses to JSON pointers.
	resources, anchors map[string]string
	refs               []reference
}

// reference is a schema with a $ref that must be resolved.
type reference struct {
	schema node
	base   *url.URL
}

// home is the address of a document without an $id.
var home = &url.URL{Scheme: "file", Path: "/values.schema.json"}

// index finds the references and the names in a document.
func index(root any) *addresses {
	a := &addresses{
		id: "$id", siblings: Siblings(root), anchors: map[string]string{},
		resources: map[string]string{home.String(): ""},
	}
	if strings.Contains(draftOf(root), "json-schema.org/draft-04") {
		a.id = "id"
	}
	a.schema(root, "", home)
	return a
}

// pointer returns the JSON pointer to the target of a reference.
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

// elsewhere reports whether a reference points to a document that is neither this one nor one
// of those that every validator has.
func (a *addresses) elsewhere(ref string, base *url.URL) bool {
	target, err := base.Parse(ref)
	if err != nil {
		return true
	}
	target.Fragment, target.RawFragment = "", ""
	_, here := a.resources[target.String()]
	return !here && target.Host != "json-schema.org"
}

// schema indexes the names in a schema or in a list of schemas.
func (a *addresses) schema(value any, pointer string, base *url.URL) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			a.schema(item, pointer+"/"+strconv.Itoa(i), base)
		}
	case node:
		base = a.name(v, pointer, base)
		if slices.ContainsFunc(refKeys, func(key string) bool { return refers(v[key], base) }) {
			a.refs = append(a.refs, reference{v, base})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := pointer + "/" + jsonpointer.Escape(key)
			inner, isMap := v[key].(node)
			switch {
			case slices.Contains(holdsValues, key):
			case isMap && slices.Contains(holdsSchemas, key):
				for _, name := range slices.Sorted(maps.Keys(inner)) {
					a.schema(inner[name], at+"/"+jsonpointer.Escape(name), base)
				}
			default:
				a.schema(v[key], at, base)
			}
		}
	}
}

// refers reports whether a keyword refers to something else than a JSON pointer from the root.
func refers(value any, base *url.URL) bool {
	ref, ok := value.(string)
	return ok && (base.String() != home.String() || !strings.HasPrefix(ref, "#/"))
}

// name indexes the names of one schema, and returns the base of relative references
// in it.
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
	// holdsValues are the keywords whose values are not schemas.
	holdsValues = []string{"enum", "const", "default", "examples", "example"}
	// holdsSchemas are the keywords whose values are maps of schemas.
	holdsSchemas = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
