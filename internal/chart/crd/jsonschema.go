package crd

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"
)

// node is one JSON Schema object. A node of the document must not be changed;
// resolve returns a copy.
type node = map[string]any

// jsonSchema is a whole values.schema.json.
type jsonSchema struct {
	root any
	// siblings is true if keywords next to a $ref apply: since draft 2019-09, and in
	// schemas without $schema.
	siblings bool
	// loops caches whether references are recursive.
	loops map[string]bool
}

func parse(data []byte) (jsonSchema, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	// Large numbers in an enum remain exact.
	decoder.UseNumber()
	doc := jsonSchema{siblings: true, loops: map[string]bool{}}
	if err := decoder.Decode(&doc.root); err != nil {
		return doc, err
	}
	if root, ok := doc.root.(node); ok {
		draft, _ := root["$schema"].(string)
		doc.siblings = !strings.Contains(draft, "json-schema.org/draft-0")
		id := "$id"
		if strings.Contains(draft, "json-schema.org/draft-04") {
			id = "id"
		}
		settle(root, id, doc.siblings)
	}
	return doc, nil
}

// lookup returns the schema that a $ref within the document points to. The $ref is a
// JSON pointer.
func (d jsonSchema) lookup(ref string) (any, bool) {
	fragment, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	pointer, err := jsonpointer.New(fragment)
	if err != nil {
		return nil, false
	}
	target, _, err := pointer.Get(d.root)
	return target, err == nil
}

// recursive reports whether the target of a $ref refers to itself, directly or not.
func (d jsonSchema) recursive(ref string) bool {
	if _, known := d.loops[ref]; !known {
		target, _ := d.lookup(ref)
		d.loops[ref] = d.leadsTo(target, ref, map[string]bool{})
	}
	return d.loops[ref]
}

// leadsTo reports whether a schema contains a $ref at any depth, or refers to a schema
// that does. References in seen were already followed.
func (d jsonSchema) leadsTo(schema any, ref string, seen map[string]bool) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, func(item any) bool { return d.leadsTo(item, ref, seen) })
	case node:
		if next, ok := s["$ref"].(string); ok && !seen[next] {
			seen[next] = true
			target, _ := d.lookup(next)
			if next == ref || d.leadsTo(target, ref, seen) {
				return true
			}
		}
		for _, inner := range s {
			if d.leadsTo(inner, ref, seen) {
				return true
			}
		}
	}
	return false
}

// normalize converts a const to an enum of one value, and the boolean exclusive limits
// of draft 4 to numbers.
func normalize(n node) node {
	n = maps.Clone(n)
	if value, ok := n["const"]; ok {
		n["enum"] = []any{value}
		delete(n, "const")
	}
	for exclusive, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if is, isBool := n[exclusive].(bool); isBool {
			delete(n, exclusive)
			if value, ok := n[limit]; is && ok {
				n[exclusive] = value
				delete(n, limit)
			}
		}
	}
	return n
}

// assertedFormats holds the formats that Helm checks in drafts before 2019-09.
var assertedFormats = []string{
	"date", "date-time", "time", "duration", "period", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "regex", "relative-json-pointer", "semver", "uri", "uri-reference", "uri-template", "uuid",
}

// asserts reports whether Helm checks a format. Since draft 2019-09, formats are only
// annotations.
func (d jsonSchema) asserts(format string) bool {
	return !d.siblings && slices.Contains(assertedFormats, format)
}

func isTrue(schema any) bool { return schema == any(true) }

func isFalse(schema any) bool { return schema == any(false) }

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

// settle rewrites the references of a document, in place, to JSON pointers from its
// root. It does not change references to other documents.
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

// schema indexes the names in a schema or in a list of schemas.
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
